"""The heartbeat: charges, renewals, running to the last credit, and what comes after a lapse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.core import bounds
from gpucredits.core.account import Model, Status
from gpucredits.core.book import Book
from gpucredits.core.command import Command, Settle, UpdateAccount
from gpucredits.core.entry import EntryType
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved, Closed
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.core.rules.leases import heartbeats
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_WINDOW = 1_200_000


def beat(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """A heartbeat that is answered."""
    return ledger.accept(Beat(lease, seq, used_ms), BeatResult)


def test_a_beat_settles_and_renews_in_one_row(ledger: Ledger) -> None:
    """The slice goes from reserved to spent and the same again from available to reserved."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=30)
    beaten = beat(ledger, lease, 1, 30_000)
    assert (beaten.decision, beaten.settled, beaten.held) == ("continue", 300_000, A_WINDOW)
    assert beaten.expires_in_ms == 120_000
    row = ledger.entries()[-1]
    assert (row.type, row.amount, row.reserve) == (EntryType.SETTLE, 300_000, 300_000)
    account = ledger.account("acme")
    assert (account.available, account.reserved, account.spent) == (8_500_000, A_WINDOW, 300_000)


def test_the_lease_ends_where_the_last_credit_runs_out(ledger: Ledger) -> None:
    """A renewal that cannot fund the window drains to a deadline exact to the millisecond."""
    ledger.grant("acme", A_WINDOW + 5)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=60)
    beaten = beat(ledger, lease, 1, 60_000)
    assert (beaten.decision, beaten.reason) == (Decision.DRAIN, "insufficient_credits")
    assert (beaten.held, beaten.expires_in_ms) == (600_005, 60_000)
    ledger.wait(ms=59_999)
    last = beat(ledger, lease, 2, 119_999)
    assert (last.decision, last.expires_in_ms, last.held) == (Decision.DRAIN, 1, 15)
    assert ledger.account("acme").available == 0
    ledger.wait(ms=1)
    assert beat(ledger, lease, 3, 120_000).decision is Decision.STOP
    account = ledger.account("acme")
    assert (account.spent, account.reserved, account.available) == (A_WINDOW, 0, 5)


def test_use_to_the_very_end_is_settled_and_stops(ledger: Ledger) -> None:
    """With not a millisecond left the answer is stop, and the lease is over at once."""
    ledger.grant("acme", A_WINDOW)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=60)
    assert beat(ledger, lease, 1, 0).expires_in_ms == 120_000
    ledger.wait(s=60)
    beaten = beat(ledger, lease, 2, 120_000)
    assert (beaten.decision, beaten.settled, beaten.held) == (Decision.STOP, A_WINDOW, 0)
    assert beaten.state is ReservationState.EXPIRED
    account = ledger.account("acme")
    assert (account.spent, account.remaining, account.reserved) == (A_WINDOW, 0, 0)


def test_a_drained_lease_goes_on_when_credits_arrive(ledger: Ledger) -> None:
    """Drain is a deadline, not a sentence."""
    ledger.grant("acme", A_WINDOW)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=10)
    assert beat(ledger, lease, 1, 10_000).decision is Decision.DRAIN
    ledger.grant("acme", CREDIT)
    ledger.wait(s=10)
    beaten = beat(ledger, lease, 2, 20_000)
    assert (beaten.decision, beaten.held, beaten.expires_in_ms) == ("continue", A_WINDOW, 120_000)


def test_what_a_lapsed_lease_owes_is_covered_and_collected(ledger: Ledger) -> None:
    """Late use beyond the balance is covered by the house; later credits are collected first."""
    ledger.grant("acme", 30_000)
    lease = ledger.lease("acme", window_ms=3_000).reservation_id
    ledger.wait(s=3)
    other = ledger.lease("acme", window_ms=2_000).reservation_id
    beaten = beat(ledger, lease, 1, 2_500)
    assert (beaten.decision, beaten.settled, beaten.held) == (Decision.STOP, 25_000, 0)
    account = ledger.account("acme")
    assert (account.available, account.spent, account.overrun) == (0, 25_000, 15_000)
    kinds = [entry.type for entry in ledger.entries()][-3:]
    assert kinds == [EntryType.OVERRUN, EntryType.SETTLE, EntryType.SETTLE]
    ledger.wait(s=1)
    assert ledger.accept(Settle(reservation_id=other, used_ms=1_000), Closed).released == 10_000
    assert ledger.account("acme").overrun == 5_000
    ledger.grant("acme", 2_000)
    assert ledger.account("acme").overrun == 3_000
    ledger.grant("acme", 12_000)
    account = ledger.account("acme")
    assert (account.available, account.overrun) == (9_000, 0)


def test_a_charge_beyond_the_hold_takes_from_available_first(ledger: Ledger) -> None:
    """Use of a time that was not reported before is paid by the balance beside the hold."""
    ledger.grant("acme", 20_000)
    lease = ledger.lease("acme", window_ms=1_000).reservation_id
    ledger.wait(ms=800)
    beat(ledger, lease, 1, 0)
    ledger.wait(ms=700)
    beaten = beat(ledger, lease, 2, 1_500)
    assert (beaten.settled, beaten.held, beaten.decision) == (15_000, 5_000, Decision.DRAIN)
    assert ledger.account("acme").overrun == 0


def test_postpaid_runs_down_to_its_limit(ledger: Ledger) -> None:
    """Below zero to the limit and no further; the rest of the window is not funded."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=A_WINDOW + 100_000)
    ledger.grant("acme/post", 50_000)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=20)
    beaten = beat(ledger, lease, 1, 20_000)
    assert (beaten.decision, beaten.held) == (Decision.DRAIN, 1_150_000)
    account = ledger.account("acme/post")
    assert (account.debt, account.available) == (150_000, -A_WINDOW - 100_000)
    ledger.grant("acme/post", 200_000)
    account = ledger.account("acme/post")
    assert (account.debt, account.available) == (0, -A_WINDOW + 100_000)


BOUNDS = {
    "the elapsed time itself": (10_000, 10_000, ""),
    "a clock that is ahead is cut": (10_001, 10_000, ""),
    "as far as the tolerance": (12_000, 10_000, ""),
    "a millisecond beyond it is flagged": (12_001, 10_000, "used_ms_beyond_elapsed"),
    "hours beyond it are cut to the same": (36_000_000, 10_000, "used_ms_beyond_elapsed"),
    "going back changes nothing and is flagged": (4_999, 5_000, "used_ms_went_back"),
    "paused time adds none": (5_000, 5_000, ""),
}


@pytest.mark.parametrize(("told", "believed", "flag"), BOUNDS.values(), ids=BOUNDS.keys())
def test_use_is_bounded_by_the_servers_clock(
    ledger: Ledger, told: int, believed: int, flag: str
) -> None:
    """Ten seconds after admission, with five reported before."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=5)
    beat(ledger, lease, 1, 5_000)
    ledger.wait(s=5)
    beaten = beat(ledger, lease, 2, told)
    assert (beaten.flagged, beaten.settled) == (flag, believed * 10)
    assert (beaten.held, beaten.expires_in_ms) == (A_WINDOW, 120_000)
    assert ledger.reservation(lease).used_ms == believed


@pytest.mark.parametrize(("told", "believed", "flag"), BOUNDS.values(), ids=BOUNDS.keys())
def test_the_last_report_is_bounded_as_a_beat_is(
    ledger: Ledger, told: int, believed: int, flag: str
) -> None:
    """A settle is charged what can be so, and says why that is not what was reported."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=5)
    beat(ledger, lease, 1, 5_000)
    ledger.wait(s=5)
    closed = ledger.accept(Settle(reservation_id=lease, used_ms=told), Closed)
    assert (closed.flagged, closed.used_ms, closed.settled) == (flag, believed, believed * 10)


@pytest.mark.parametrize("seq", [2, 1, 0])
def test_a_duplicate_beat_renews_nothing(ledger: Ledger, seq: int) -> None:
    """A second copy, or one overtaken by a later one, gets the current state and no more time."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=5)
    beat(ledger, lease, 2, 5_000)
    ledger.wait(s=5)
    before = ledger.dump()
    again = beat(ledger, lease, seq, 10_000)
    assert (again.duplicate, again.decision, again.settled) == (True, "continue", 50_000)
    assert again.expires_in_ms == 115_000
    assert ledger.dump() == before


def test_a_report_of_more_use_under_a_used_seq_is_told_the_last_seq(ledger: Ledger) -> None:
    """Somebody else has reported: nothing is charged until the node goes beyond that seq."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=10)
    beat(ledger, lease, 1_000, 0)
    ledger.wait(s=20)
    told = beat(ledger, lease, 1, 30_000)
    assert (told.duplicate, told.flagged, told.last_seq, told.settled) == (
        True,
        "seq_taken",
        1_000,
        0,
    )
    again = beat(ledger, lease, 1_001, 30_000)
    assert (again.duplicate, again.flagged, again.settled) == (False, "", 300_000)


def test_a_repeated_report_is_not_taken_for_somebody_else_s(ledger: Ledger) -> None:
    """Its use may be ahead of the server's time by as much as clocks may differ."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=5)
    for _ in range(2):
        assert beat(ledger, lease, 2, 5_000 + bounds.CLOCK_TOLERANCE_MS).flagged == ""
    assert beat(ledger, lease, 1, 4_000).flagged == ""


def test_a_lapsed_lease_stays_lapsed(ledger: Ledger) -> None:
    """A beat after the lapse is charged for use up to the lapse, once, and renews nothing."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=30)
    beat(ledger, lease, 1, 30_000)
    ledger.wait(s=120)
    late = beat(ledger, lease, 2, 140_000)
    assert (late.decision, late.reason, late.settled) == (Decision.STOP, "expired", 1_400_000)
    assert (late.held, late.expires_in_ms, late.state) == (0, 0, ReservationState.EXPIRED)
    ledger.wait(s=1_000)
    beat(ledger, lease, 3, 1_150_000)
    for seq in (1, 2, 3):
        assert beat(ledger, lease, seq, 1_150_000).settled == 1_500_000
    assert beat(ledger, lease, 4, 1_150_000).settled == 1_500_000
    noted = [(use.seq, use.used_ms) for use in ledger.stored.late_use]
    assert noted == [(2, 140_000), (3, 150_000)]
    account = ledger.account("acme")
    assert (account.spent, account.reserved, account.available) == (1_500_000, 0, 8_500_000)


def test_settling_after_the_lapse_pays_for_the_last_slice(ledger: Ledger) -> None:
    """A launcher that obeys the deadline and then settles pays for all it used, once."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=120)
    command = Settle(reservation_id=lease, used_ms=120_000)
    for _ in range(2):
        closed = ledger.accept(command, Closed)
        assert (closed.state, closed.released) == (ReservationState.EXPIRED, 0)
        assert (closed.flagged, closed.settled) == ("lapsed", A_WINDOW)
    assert ledger.account("acme").spent == A_WINDOW
    last = ledger.entries()[-2:]
    assert [entry.type for entry in last] == [EntryType.RELEASE, EntryType.SETTLE]
    assert last[0].effective_at == START + 120 * SECOND


def test_settle_without_use_is_the_last_accepted(ledger: Ledger) -> None:
    """A settle that names no use charges nothing more and releases the hold."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=7)
    beat(ledger, lease, 1, 7_000)
    ledger.wait(s=7)
    closed = ledger.accept(Settle(reservation_id=lease), Closed)
    assert (closed.settled, closed.released, closed.used_ms) == (70_000, A_WINDOW, 7_000)
    assert beat(ledger, lease, 9, 14_000).reason == "settled"


@pytest.mark.parametrize("suspended", ["acme", "acme/vision", "acme/vision/alice"])
def test_a_suspended_account_drains_what_runs(ledger: Ledger, suspended: str) -> None:
    """Itself or one above: the hold is used up and not renewed; resuming renews it."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme/vision/alice", grace_ms=120_000).reservation_id
    ledger.accept(UpdateAccount(path=suspended, status=Status.SUSPENDED), AccountSaved)
    ledger.wait(s=30)
    beaten = beat(ledger, lease, 1, 30_000)
    assert (beaten.decision, beaten.reason) == (Decision.DRAIN, "account_suspended")
    assert (beaten.held, beaten.expires_in_ms) == (900_000, 90_000)
    ledger.wait(s=30)
    assert beat(ledger, lease, 2, 30_000).expires_in_ms == 60_000
    ledger.accept(UpdateAccount(path=suspended, status=Status.ACTIVE), AccountSaved)
    ledger.wait(s=30)
    beaten = beat(ledger, lease, 3, 60_000)
    assert (beaten.decision, beaten.held, beaten.expires_in_ms) == ("continue", A_WINDOW, 120_000)


def test_a_sibling_of_a_suspended_account_runs_on(ledger: Ledger) -> None:
    """A path that only begins the same is not below."""
    ledger.grant("acme", 10 * CREDIT)
    ledger.open("acme/vis")
    ledger.accept(UpdateAccount(path="acme/vis", status=Status.SUSPENDED), AccountSaved)
    lease = ledger.lease("acme/vision").reservation_id
    ledger.wait(s=1)
    assert beat(ledger, lease, 1, 1_000).decision is Decision.CONTINUE


@pytest.mark.as_source
def test_who_is_suspended_elsewhere_costs_a_beat_a_few_look_ups(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed in one go, and only accounts on its way are asked about."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme/vision/alice").reservation_id
    asked: list[str] = []

    class LookedUp(dict[str, bool]):
        def __contains__(self, path: object) -> bool:
            asked.append(str(path))
            return super().__contains__(path)

        def __iter__(self) -> Iterator[str]:
            raise AssertionError("every suspended account was looked at")

    load = Ledger._load

    def loaded(self: Ledger, command: Command, **how: bool) -> Book:
        book = load(self, command, **how)
        book.suspended = LookedUp(gone)
        return book

    gone = {f"acme/vision/gone-{number}": False for number in range(9)}
    monkeypatch.setattr(Ledger, "_load", loaded)
    monkeypatch.setattr(heartbeats, "charge", None)
    ledger.stored.suspended = LookedUp(gone)
    ledger.wait(s=1)
    assert beat(ledger, lease, 1, 1_000).decision is Decision.CONTINUE
    assert sorted(asked) == ["acme", "acme/vision", "acme/vision/alice"]


def test_a_job_drains_to_its_own_cap(ledger: Ledger) -> None:
    """With max_amount the hold never reaches beyond it, however rich the payer."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme", max_amount=1_500_000).reservation_id
    ledger.wait(s=60)
    beaten = beat(ledger, lease, 1, 60_000)
    assert (beaten.decision, beaten.reason) == (Decision.DRAIN, "max_amount")
    assert (beaten.held, beaten.expires_in_ms) == (900_000, 90_000)


def test_escrow_keeps_the_lease_for_its_extra_windows(ledger: Ledger) -> None:
    """With one window of escrow the server waits two windows before it lets the lease lapse."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme", escrow_windows=1).reservation_id
    ledger.wait(ms=239_999)
    beaten = beat(ledger, lease, 1, 239_999)
    assert (beaten.settled, beaten.held) == (2_399_990, 2 * A_WINDOW)
    assert beaten.expires_in_ms == 240_000


def test_a_beat_that_empties_a_grant_lets_the_next_one_pay(ledger: Ledger) -> None:
    """A grant used up to the last micro-credit is out of the order at once."""
    small = ledger.grant("acme", 10_000, priority=1).grant_id
    large = ledger.grant("acme", 2 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    for seq in (1, 2):
        ledger.wait(s=1)
        beat(ledger, lease, seq, seq * 1_000)
    assert ledger.reservation(lease).paid == ((small, 10_000), (large, 10_000))
    rows = [(e.grant_id, e.amount) for e in ledger.entries() if e.type is EntryType.SETTLE]
    assert rows == [(small, 10_000), (large, 10_000)]


def test_a_deadline_that_comes_nearer_is_kept(ledger: Ledger) -> None:
    """Use after a pause brings the end forward, and the lease lapses there unswept."""
    ledger.grant("acme", A_WINDOW)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=60)
    assert beat(ledger, lease, 1, 0).expires_in_ms == 120_000
    ledger.wait(s=2)
    assert beat(ledger, lease, 2, 62_000).expires_in_ms == 58_000
    ledger.wait(s=58)
    assert ledger.account("acme").available == 580_000
    assert beat(ledger, lease, 3, 118_000).decision is Decision.STOP


def test_use_beyond_the_jobs_cap_is_not_charged_and_ends_it(ledger: Ledger) -> None:
    """The cap bounds the hold and the bill: nothing is held below nothing."""
    ledger.grant("acme", CREDIT)
    lease = ledger.lease("acme", window_ms=1_000, max_amount=20_000).reservation_id
    for seq in range(1, 4):
        ledger.wait(ms=900)
        beat(ledger, lease, seq, 0)
    beaten = beat(ledger, lease, 4, 2_500)
    assert (beaten.decision, beaten.settled, beaten.held) == (Decision.STOP, 20_000, 0)
    assert beaten.flagged == "used_ms_beyond_authorised"
    assert ledger.account("acme").available == 980_000
    assert all(entry.amount > 0 for entry in ledger.entries())
