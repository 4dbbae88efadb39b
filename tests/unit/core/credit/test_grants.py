"""Balances and the life of a grant: pending, active, consumed in order, held over, ended."""

from __future__ import annotations

import pytest

from gpucredits.core import bounds
from gpucredits.core.account import Model
from gpucredits.core.command import Cancel, Issue, Settle, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, GrantState, Source, consumption_order
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed, Granted, Swept
from gpucredits.core.reasons import Reason
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_WINDOW = 1_200_000  # what one h100 costs for the default window


def test_pending_credits_are_not_available_until_their_start(ledger: Ledger) -> None:
    """A grant that starts later counts from exactly that instant, with nobody sweeping."""
    ledger.grant("acme", 5, starts_at=START + SECOND)
    ledger.wait(us=SECOND - 1)
    assert ledger.account("acme").available == 0
    ledger.wait(us=1)
    assert ledger.account("acme").available == 5


def test_a_grant_is_gone_from_the_instant_it_ends(ledger: Ledger) -> None:
    """Windows are half-open: the last microsecond before the end still pays."""
    ledger.grant("acme", A_WINDOW, expires_at=START + SECOND)
    ledger.wait(us=SECOND - 1)
    assert ledger.account("acme").available == A_WINDOW
    ledger.wait(us=1)
    assert ledger.account("acme").available == 0


def test_what_the_clock_did_is_written_at_its_own_instants(ledger: Ledger) -> None:
    """Rolled months later, entries carry the instants at which things happened, in order."""
    ledger.grant("acme", 7, starts_at=START + SECOND, expires_at=START + 2 * SECOND)
    ledger.wait(s=10_000)
    number = ledger.account("acme").account_id
    assert ledger.accept(Sweep(account_id=number), Swept) == Swept(2, moved_on=True)
    assert [(entry.type, entry.effective_at) for entry in ledger.entries()] == [
        (EntryType.ISSUE, START + SECOND),
        (EntryType.EXPIRE, START + 2 * SECOND),
    ]
    assert ledger.accept(Sweep(account_id=number), Swept) == Swept(0, moved_on=False)


def test_one_month_ends_where_the_next_begins(ledger: Ledger) -> None:
    """Museum 9: at the reset instant itself the old allowance is gone and the new one is there."""
    ledger.grant("acme", 5, expires_at=START + SECOND)
    ledger.grant("acme", 3, starts_at=START + SECOND, expires_at=START + 2 * SECOND)
    ledger.wait(s=1)
    assert ledger.account("acme").available == 3
    ledger.wait(s=1)
    assert ledger.account("acme").available == 0


def test_a_backdated_start_makes_no_credits_in_the_past(ledger: Ledger) -> None:
    """Museum 10: a grant with an earlier start is effective when it was issued."""
    ledger.grant("acme", 5, starts_at=START - SECOND)
    assert ledger.entries()[-1].effective_at == START
    ended = Issue(account="acme", amount=1, starts_at=START - 9, expires_at=START)
    assert ledger.reason(ended) is Reason.WINDOW_ENDED


EARLY, LATE = START + 100 * SECOND, START + 200 * SECOND
FIRST = {"expires_at": LATE, "priority": 100, "source": Source.ALLOWANCE, "starts_at": START}
BEFORE = {
    "a lower priority number, though it ends later": {"priority": 99, "expires_at": LATE + 1},
    "a sooner end, though it was paid for": {"expires_at": EARLY, "source": Source.TOPUP},
    "promo before allowance at the same end": {"source": Source.PROMO},
    "an earlier start when all else is equal": {"starts_at": START - 1},
}


@pytest.mark.parametrize("better", BEFORE.values(), ids=BEFORE.keys())
def test_the_order_of_consumption(ledger: Ledger, better: dict[str, object]) -> None:
    """The grant named, though issued later, pays first."""
    second = ledger.grant("acme", CREDIT, **FIRST)
    first = ledger.grant("acme", CREDIT, **{**FIRST, **better})
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 1, 1_000), BeatResult)
    assert ledger.reservation(lease).paid == ((first.grant_id, 10_000),)
    assert ledger.lot(second.grant_id).remaining == CREDIT


def test_the_order_is_total() -> None:
    """Held over after all, ids last: no two grants are ever equal in it."""
    twin = Grant(1, 1, 5, 5, START)
    other = Grant(2, 1, 5, 5, START)
    held = Grant(3, 1, 5, 5, START, priority=1, state=GrantState.HELD_OVER)
    assert sorted([held, other, twin], key=consumption_order) == [twin, other, held]


def test_a_charge_over_several_grants_records_each(ledger: Ledger) -> None:
    """Which grant paid how much is on the lease and in the entries, in order."""
    small = ledger.grant("acme", 4_000, priority=1).grant_id
    large = ledger.grant("acme", 2 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 1, 1_000), BeatResult)
    assert ledger.reservation(lease).paid == ((small, 4_000), (large, 6_000))
    settled = [e for e in ledger.entries() if e.type is EntryType.SETTLE]
    assert [(e.grant_id, e.amount, e.reserve) for e in settled] == [
        (small, 4_000, 10_000),
        (large, 6_000, 0),
    ]


def test_a_grant_that_ends_under_a_live_hold_honours_it(ledger: Ledger) -> None:
    """What the hold counts on is kept and paid from first; the rest expires at once."""
    ending = ledger.grant("acme", 2 * CREDIT, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=60)
    account, grant = ledger.account("acme"), ledger.lot(ending)
    assert (account.available, account.reserved) == (0, A_WINDOW)
    assert (grant.remaining, grant.state) == (A_WINDOW, GrantState.HELD_OVER)
    fresh = ledger.grant("acme", CREDIT, priority=1).grant_id
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 1, 61_000), BeatResult)
    assert ledger.reservation(lease).paid == ((ending, 610_000),)
    closed = ledger.accept(Settle(reservation_id=lease), Closed)
    assert closed.settled == 610_000
    assert ledger.lot(ending).remaining == 0
    assert ledger.lot(fresh).remaining == CREDIT
    assert ledger.account("acme").available == CREDIT


def test_held_over_credits_expire_only_as_their_holds_let_go(ledger: Ledger) -> None:
    """Two holds on an ended grant: the end of one frees its share alone."""
    ending = ledger.grant("acme", 2 * A_WINDOW, expires_at=START + SECOND).grant_id
    first, second = (ledger.lease("acme").reservation_id for _ in range(2))
    ledger.wait(s=1)
    ledger.accept(Cancel(reservation_id=first), Closed)
    assert ledger.lot(ending).remaining == A_WINDOW
    ledger.accept(Cancel(reservation_id=second), Closed)
    assert ledger.lot(ending).remaining == 0
    assert ledger.account("acme").available == 0


def test_other_credits_carry_the_hold_when_they_can(ledger: Ledger) -> None:
    """A grant that ends beside enough others keeps what may have been used, and nothing else."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    ledger.grant("acme", A_WINDOW)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    assert ledger.lot(ending).remaining == 10_000
    assert ledger.reservation(lease).kept == ((ending, 10_000, START + SECOND),)
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 1, 0), BeatResult)
    assert ledger.lot(ending).state is GrantState.ENDED
    assert ledger.account("acme").available == 0


def test_an_expiring_grant_never_takes_from_another(ledger: Ledger) -> None:
    """Museum 11: use up to the end is paid by the grant that ends, and the other lot is whole."""
    ending = ledger.grant("acme", 15_000, expires_at=START + SECOND, priority=1).grant_id
    other = ledger.grant("acme", 2 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(ms=999)
    ledger.accept(Beat(lease, 1, 999), BeatResult)
    ledger.wait(ms=1)
    ledger.accept(Beat(lease, 2, 1_000), BeatResult)
    assert ledger.lot(ending).remaining == 0
    expired = [e.amount for e in ledger.entries() if e.type is EntryType.EXPIRE]
    assert expired == [15_000 - 10_000]
    assert ledger.lot(other).remaining == 2 * CREDIT


def test_debt_is_repaid_by_a_grant_when_it_starts(ledger: Ledger) -> None:
    """Postpaid: later credits repay debt first, at the instant they start."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=10 * CREDIT)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=100)
    ledger.accept(Settle(reservation_id=lease, used_ms=100_000), Closed)
    assert ledger.account("acme/post").debt == CREDIT
    ledger.grant("acme/post", 3 * CREDIT, starts_at=ledger.now + SECOND)
    assert ledger.account("acme/post").available == -CREDIT
    ledger.wait(s=1)
    account = ledger.account("acme/post")
    assert (account.available, account.debt) == (2 * CREDIT, 0)


def test_an_account_has_a_bounded_number_of_grants() -> None:
    """One more than the bound is refused, once its window has been found good."""
    ledger = Ledger()
    ledger.open("acme")
    for _ in range(bounds.GRANTS_LIVE_MAX):
        ledger.accept(Issue(account="acme", amount=1), Granted)
    assert ledger.reason(Issue(account="acme", amount=1)) is Reason.GRANTS_FULL
    ended = Issue(account="acme", amount=1, expires_at=START)
    assert ledger.reason(ended) is Reason.WINDOW_ENDED
