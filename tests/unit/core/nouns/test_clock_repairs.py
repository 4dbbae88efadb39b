"""The rule that brings an org back from a time that had not come yet."""

from __future__ import annotations

from collections import defaultdict

import pytest

from gpucredits.core.bounds import CLOCK_JUMP_US
from gpucredits.core.budget import Rollover
from gpucredits.core.clock_repair import ClockRepair, Left, Mend, Traces
from gpucredits.core.command import (
    ReverseTopUp,
    SetBudget,
    SetQuota,
    SetRateLimit,
    StopLease,
    Transfer,
)
from gpucredits.core.decide import roll
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import GrantState
from gpucredits.core.heartbeat import Beat
from gpucredits.core.period import Calendar, period_at
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import ReservationState
from gpucredits.core.rules.credit.clock_repairs import repair
from support.books.ledger import CREDIT, SECOND, Ledger

HOUR_S = 3_600
DAY_S = 24 * HOUR_S
DAY = DAY_S * SECOND


def traces_of(ledger: Ledger) -> Traces:
    """What a store would find beside the rows."""
    expired: dict[int, int] = defaultdict(int)
    signs = {EntryType.EXPIRE: 1, EntryType.RESTORE: -1}
    for entry in ledger.entries():
        expired[entry.grant_id] += signs.get(entry.type, 0) * entry.amount
    periods = [row for rows in ledger.stored.periods.values() for row in rows]
    return Traces(expired, {row.grant_id for row in periods if row.rolled})


class Wrong:
    """A ledger whose clock is ahead from here on until it is repaired."""

    def __init__(self, ledger: Ledger, days: int = 1) -> None:
        self.ledger = ledger
        self.true_now = ledger.now
        ledger.wait(s=days * DAY_S)
        self.roll()

    def roll(self) -> None:
        """Write down what the clock has made true."""
        book = self.ledger.stored
        book.complete = set(book.accounts)
        for account in book.accounts.values():
            roll(book, account, self.ledger.now)
        if book.savepoint is not None:
            book.keep()

    def repair(self) -> ClockRepair:
        """Bring the org back to the true time."""
        book = self.ledger.stored
        book.org.clock = self.ledger.now
        self.ledger.now = self.true_now
        done = repair(book, traces_of(self.ledger), self.true_now)
        assert done is not None
        return done


@pytest.fixture
def ledger() -> Ledger:
    """One org with a price of a credit for each second, and 100 credits."""
    made = Ledger()
    made.open("acme")
    made.price("h100", HOUR_S * CREDIT)
    made.grant("acme", 100 * CREDIT)
    return made


@pytest.mark.parametrize("ahead_us", [-DAY, 0, CLOCK_JUMP_US])
def test_a_clock_that_is_hardly_ahead_is_left_alone(ledger: Ledger, ahead_us: int) -> None:
    """Within the tolerance, or behind, nothing changes."""
    ledger.stored.org.clock = ledger.now + ahead_us
    before = ledger.dump()
    assert repair(ledger.stored, traces_of(ledger), ledger.now) is None
    assert ledger.dump() == before


def test_a_repair_is_done_once(ledger: Ledger) -> None:
    """After a repair the org's clock is the present, and there is nothing left to repair."""
    wrong = Wrong(ledger)
    done = wrong.repair()
    assert (done.clock, ledger.stored.org.clock) == (wrong.true_now + DAY, wrong.true_now)
    before = ledger.dump()
    assert repair(ledger.stored, traces_of(ledger), ledger.now) is None
    assert ledger.dump() == before


def test_a_grant_that_ended_early_goes_on(ledger: Ledger) -> None:
    """What expired is back in its grant by a new entry, and expires at its true end."""
    grant = ledger.grant("acme", 50 * CREDIT, expires_at=ledger.now + HOUR_S * SECOND)
    wrong = Wrong(ledger)
    assert ledger.account("acme").available == 100 * CREDIT
    done = wrong.repair()
    assert [(row.grant_id, row.mend, row.amount) for row in done.grants] == [
        (grant.grant_id, Mend.RESTORED, 50 * CREDIT)
    ]
    last = ledger.entries()[-1]
    assert (last.type, last.grant_id, last.amount) == (
        EntryType.RESTORE,
        grant.grant_id,
        50 * CREDIT,
    )
    assert ledger.account("acme").available == 150 * CREDIT
    ledger.wait(s=HOUR_S)
    assert ledger.account("acme").available == 100 * CREDIT


def test_what_was_restored_repays_debt_first(ledger: Ledger) -> None:
    """A debt that arose while the credits were gone is paid by them."""
    ledger.grant("acme", 50 * CREDIT, expires_at=ledger.now + HOUR_S * SECOND)
    wrong = Wrong(ledger)
    account = ledger.stored.paths["acme"]
    account.debt, account.overrun = 20 * CREDIT, 0
    wrong.repair()
    assert (account.debt, account.remaining) == (0, 130 * CREDIT)
    assert ledger.entries()[-1].type is EntryType.REPAY


def test_a_held_over_grant_loses_its_claims(ledger: Ledger) -> None:
    """Claims on a grant that goes on are gone with the end that never was."""
    end = ledger.now + 90 * SECOND
    grant = ledger.grant("acme", 500 * CREDIT, priority=1, expires_at=end)
    lease = ledger.lease("acme", window_ms=120_000, milli_gpus=4_000)
    wrong = Wrong(ledger, days=0)
    ledger.wait(s=100)
    wrong.roll()
    stored = ledger.stored.reservations[lease.reservation_id]
    assert ledger.stored.lots[grant.grant_id].state is GrantState.HELD_OVER
    assert stored.kept
    wrong.repair()
    lot = ledger.stored.lots[grant.grant_id]
    assert (lot.state, lot.claims, lot.remaining) == (GrantState.ACTIVE, 0, 500 * CREDIT)
    assert stored.kept == ()


def test_a_grant_that_started_early_waits_again(ledger: Ledger) -> None:
    """Its credits are withdrawn, and issued once more at its start."""
    grant = ledger.grant("acme", 7 * CREDIT, starts_at=ledger.now + HOUR_S * SECOND)
    wrong = Wrong(ledger)
    assert ledger.account("acme").available == 107 * CREDIT
    done = wrong.repair()
    assert [(row.mend, row.amount) for row in done.grants] == [(Mend.WITHDRAWN, 7 * CREDIT)]
    assert ledger.stored.lots[grant.grant_id].state is GrantState.PENDING
    last = ledger.entries()[-1]
    assert (last.type, last.amount) == (EntryType.WITHDRAW, 7 * CREDIT)
    assert ledger.account("acme").available == 100 * CREDIT
    ledger.wait(s=HOUR_S)
    assert ledger.account("acme").available == 107 * CREDIT


def test_a_grant_that_started_early_and_is_used_stays(ledger: Ledger) -> None:
    """Nothing is taken back that was spent or that a hold counts on; the repair says so."""
    grant = ledger.grant("acme", 7 * CREDIT, priority=1, starts_at=ledger.now + HOUR_S * SECOND)
    wrong = Wrong(ledger)
    ledger.lease("acme", window_ms=102_000)
    done = wrong.repair()
    assert [(row.kind, row.number) for row in done.left] == [(Left.GRANT_STARTED, grant.grant_id)]
    assert ledger.stored.lots[grant.grant_id].state is GrantState.ACTIVE
    assert ledger.stored.paths["acme"].available == 5 * CREDIT


def test_a_year_of_allowances_waits_for_its_months(ledger: Ledger) -> None:
    """Periods that were issued and ended early are pending again, and the present one is open."""
    ledger.do(SetBudget(account="acme", allowance=10 * CREDIT, calendar=Calendar.MONTH))
    wrong = Wrong(ledger, days=366)
    done = wrong.repair()
    mends = [row.mend for row in done.grants]
    assert mends.count(Mend.RESTORED) == 12
    assert mends.count(Mend.WITHDRAWN) == 12
    assert ledger.account("acme").available == 110 * CREDIT
    _, month_end = period_at(Calendar.MONTH, "UTC", ledger.now)
    ledger.now = month_end
    assert ledger.account("acme").available == 110 * CREDIT


def test_an_allowance_that_rolled_over_early_is_told(ledger: Ledger) -> None:
    """What has moved into a later grant is not moved back."""
    ledger.do(
        SetBudget(
            account="acme",
            allowance=10 * CREDIT,
            calendar=Calendar.MONTH,
            rollover=Rollover.CAPPED,
            rollover_cap=4 * CREDIT,
        )
    )
    done = Wrong(ledger, days=32).repair()
    left = [(row.kind, row.amount) for row in done.left]
    assert (Left.ALLOWANCE_ROLLED_OVER, 6 * CREDIT) in left


def test_credits_of_a_reversed_payment_stay_expired(ledger: Ledger) -> None:
    """A payment that was taken back gives nothing back."""
    paid = ledger.pay("acme", 30 * CREDIT, expires_at=ledger.now + HOUR_S * SECOND)
    assert paid.grant is not None
    number = paid.grant.grant_id
    wrong = Wrong(ledger)
    ledger.do(ReverseTopUp(topup_id=paid.topup.topup_id))
    book = ledger.stored
    book.org.clock, ledger.now = ledger.now, wrong.true_now
    done = repair(book, Traces({number: 30 * CREDIT}, reversed={number}), ledger.now)
    assert done is not None
    assert [(row.kind, row.amount) for row in done.left] == [(Left.GRANT_REVERSED, 30 * CREDIT)]
    assert ledger.account("acme").available == 100 * CREDIT


def test_grants_made_by_the_wrong_clock_have_started(ledger: Ledger) -> None:
    """A payment of then can be used now, wherever it was moved."""
    ledger.open("acme/p")
    wrong = Wrong(ledger)
    paid = ledger.pay("acme", 30 * CREDIT).grant
    assert paid is not None
    ledger.do(Transfer(source="acme", target="acme/p", amount=120 * CREDIT))
    done = wrong.repair()
    assert [row.mend for row in done.grants] == [Mend.RESTAMPED, Mend.RESTAMPED]
    for lot in ledger.stored.lots.values():
        assert max(lot.starts_at, lot.created_at) <= ledger.now
    assert ledger.account("acme/p").available == 120 * CREDIT


def test_a_lease_of_the_wrong_clock_lives_as_long_as_it_may(ledger: Ledger) -> None:
    """It was admitted now: it ends after its window, and its use is charged from now on."""
    wrong = Wrong(ledger)
    lease = ledger.lease("acme", window_ms=5_000)
    done = wrong.repair()
    stored = ledger.stored.reservations[lease.reservation_id]
    assert (stored.admitted_at, stored.beat_at) == (ledger.now, ledger.now)
    assert stored.expires_at == ledger.now + 5 * SECOND
    assert done.leases[0].expires_before == ledger.now + DAY + 5 * SECOND
    assert ledger.stored.paths["acme"].due_at == stored.expires_at
    ledger.wait(s=3)
    ledger.do(Beat(lease.reservation_id, 1, 3_000))
    assert stored.settled == 3 * CREDIT
    ledger.wait(s=6)
    assert ledger.reservation(lease.reservation_id).state is ReservationState.EXPIRED


def test_an_order_to_stop_keeps_its_grace(ledger: Ledger) -> None:
    """A lease that the wrong clock told to stop ends after as long as it was given."""
    wrong = Wrong(ledger)
    lease = ledger.lease("acme", window_ms=60_000)
    ledger.do(StopLease(reservation_id=lease.reservation_id, grace_ms=20_000))
    wrong.repair()
    stored = ledger.stored.reservations[lease.reservation_id]
    assert stored.stopping_at == ledger.now + 20 * SECOND


def test_a_lease_that_nobody_touched_stays_as_it_is(ledger: Ledger) -> None:
    """Only what was stamped ahead moves."""
    lease = ledger.lease("acme", window_ms=60_000)
    wrong = Wrong(ledger, days=0)
    ledger.now += 30 * SECOND
    ledger.grant("acme", CREDIT)
    done = wrong.repair()
    assert done.leases == []
    stored = ledger.stored.reservations[lease.reservation_id]
    assert stored.expires_at == ledger.now + 60 * SECOND


def test_windows_and_rate_limits_count_in_the_present(ledger: Ledger) -> None:
    """What was spent in a window that has not begun counts in the one that is open."""
    window = {"account": "acme", "dimension": Dimension.CREDITS_PER_WINDOW, "limit": 90 * CREDIT}
    ledger.do(SetQuota(**window, calendar=Calendar.DAY))  # type: ignore[arg-type]
    ledger.do(SetQuota(**window, rolling_hours=24))  # type: ignore[arg-type]
    ledger.do(SetRateLimit(account="acme", capacity=90 * CREDIT, refill_per_hour=CREDIT))
    lease = ledger.lease("acme", window_ms=10_000)
    ledger.wait(s=5)
    ledger.do(Beat(lease.reservation_id, 1, 5_000))
    ledger.wait(s=HOUR_S)  # a rolling window has it in an earlier cell
    wrong = Wrong(ledger, days=2)
    later = ledger.lease("acme", window_ms=10_000)
    ledger.wait(s=4)
    ledger.do(Beat(later.reservation_id, 1, 4_000))
    done = wrong.repair()
    limits = ledger.stored.limits
    assert len(done.windows) == 2
    for counter in limits.counters.values():
        assert counter.starts_at <= ledger.now < counter.ends_at
        assert (counter.used, counter.held) == (9 * CREDIT, 10 * CREDIT)
        past = sum(each.used for each in limits.tallies.get(counter.quota_id, {}).values())
        assert past == counter.base
    assert sorted(counter.base for counter in limits.counters.values()) == [0, 5 * CREDIT]
    [bucket] = limits.buckets.values()
    assert (bucket.level_at, done.rate_limits) == (ledger.now, [bucket.bucket_id])
