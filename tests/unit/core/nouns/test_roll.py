"""What the clock makes true of an account: in which order, and when it is next asked."""

from __future__ import annotations

from collections.abc import ValuesView

import pytest

from gpucredits.core.bounds import NEVER_US
from gpucredits.core.command import Issue, Reserve, Sweep
from gpucredits.core.decide import decide
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import GrantState
from gpucredits.core.outcome import Reserved, Swept
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rules.upkeep.roll import roll_due
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_WINDOW = 1_200_000


def sweep(ledger: Ledger) -> None:
    """Write down what is due for the org's own account."""
    ledger.accept(Sweep(account_id=ledger.account("acme").account_id), Swept)


def test_at_one_instant_leases_lapse_before_grants_end(ledger: Ledger) -> None:
    """A hold that ends with its grant frees the credits, and they all expire together."""
    ledger.grant("acme", A_WINDOW + 5, expires_at=START + 120 * SECOND)
    ledger.lease("acme")
    ledger.wait(s=120)
    sweep(ledger)
    last = [(entry.type, entry.amount) for entry in ledger.entries()][-2:]
    assert last == [(EntryType.RELEASE, A_WINDOW), (EntryType.EXPIRE, A_WINDOW + 5)]


def test_at_one_instant_grants_end_before_grants_start(ledger: Ledger) -> None:
    """A hold is carried over the change of month by the credits it was made on."""
    old = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    ledger.grant("acme", A_WINDOW, starts_at=START + SECOND)
    ledger.lease("acme")
    ledger.wait(s=1)
    assert ledger.lot(old).state is GrantState.HELD_OVER
    assert ledger.account("acme").available == A_WINDOW


def test_held_over_credits_expire_when_the_lease_lapses(ledger: Ledger) -> None:
    """The hold that kept them is gone, so they go, at the instant of the lapse."""
    old = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    ledger.lease("acme")
    ledger.wait(s=500)
    sweep(ledger)
    assert ledger.lot(old).state is GrantState.ENDED
    assert ledger.account("acme").available == 0
    assert ledger.entries()[-1].type is EntryType.EXPIRE
    assert ledger.entries()[-1].effective_at == START + 120 * SECOND


def test_the_next_instant_is_known(ledger: Ledger) -> None:
    """After a roll the account is due at the earliest end or start that lies ahead, or never."""
    ledger.grant("acme", A_WINDOW, expires_at=START + 300 * SECOND)
    ledger.grant("acme", 1, starts_at=START + 200 * SECOND, expires_at=START + 400 * SECOND)
    ledger.lease("acme")
    seen = []
    for at in (0, 120, 200, 300, 400):
        ledger.now = START + at * SECOND
        sweep(ledger)
        due = ledger.stored.paths["acme"].due_at
        seen.append(NEVER_US if due == NEVER_US else (due - START) // SECOND)
    assert seen == [120, 200, 300, 400, NEVER_US]


def test_a_refusal_takes_back_what_the_clock_made_due(ledger: Ledger) -> None:
    """A refused command after a lapse writes nothing; the next one sees the lapse all the same."""
    ledger.grant("acme", A_WINDOW)
    ledger.lease("acme")
    ledger.wait(s=121)
    ask = Reserve(account="acme", job_id="job", gpu_type="h100", milli_gpus=2_000)
    assert ledger.reason(ask) is Reason.INSUFFICIENT_CREDITS
    assert ledger.account("acme").available == A_WINDOW
    ended = Issue(account="acme", amount=1, expires_at=START)
    assert ledger.reason(ended) is Reason.WINDOW_ENDED
    ledger.lease("acme")


def test_an_account_is_brought_forward_by_a_look_at_its_own_leases(ledger: Ledger) -> None:
    """After an outage every payer is due: all leases of the book are looked through once."""
    looks = 0

    class Looked(dict[int, Reservation]):
        def values(self) -> ValuesView[Reservation]:  # type: ignore[override]
            nonlocal looks
            looks += 1
            return super().values()

    payers = [f"acme/vision/payer-{number}" for number in range(9)]
    for path in payers:
        ledger.open(path)
        ledger.grant(path, CREDIT * 9)
        ledger.lease(path)
    ledger.wait(s=200)
    book = ledger.copied()
    book.reservations = Looked(book.reservations)
    roll_due(book, ledger.now)
    assert looks == 1
    assert {lease.state for lease in book.reservations.values()} == {ReservationState.EXPIRED}


@pytest.mark.parametrize("stays", [True, False])
def test_a_lease_that_came_or_went_since_is_seen(ledger: Ledger, stays: bool) -> None:
    """Leases that were sorted out before are not all there are."""
    ledger.grant("acme", 9 * CREDIT)
    ledger.grant("acme/vision", 9 * CREDIT, starts_at=START + SECOND)
    leases = {ledger.lease("acme").reservation_id}
    ledger.wait(s=1)
    book = ledger.copied()
    book.prices = ledger.stored.prices
    roll_due(book, ledger.now)
    book.keep()
    book.begin()
    ask = Reserve(account="acme", job_id="more", gpu_type="h100", milli_gpus=1_000)
    outcome = decide(book, ask, ledger.now)
    assert isinstance(outcome, Reserved)
    if stays:
        book.keep()
        leases.add(outcome.reservation.reservation_id)
    else:
        book.take_back()
    ledger.wait(s=120)
    roll_due(book, ledger.now)
    assert {
        lease.reservation_id for lease in book.reservations.values() if lease.ended_at
    } == leases
    assert (set(book.reservations), book.paths["acme"].reserved) == (leases, 0)
