"""A lease that is told to stop: how far it still runs, and what becomes of it if it need not."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import ResumeLease, Settle, StopLease, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved, Closed, Resumed, Stopping
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import ReservationState
from support.books.ledger import CREDIT, SECOND, Ledger


def running(ledger: Ledger) -> int:
    """A lease of two minutes that has been renewed once."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", grace_ms=60_000).reservation_id
    ledger.wait(s=10)
    assert ledger.accept(Beat(lease, 1, 10_000), BeatResult).decision == "continue"
    return lease


def stop(ledger: Ledger, lease: int, *, in_s: int, waiter: int = 7) -> Stopping:
    """An order to stop for a request in the queue, with that much grace."""
    order = StopLease(reservation_id=lease, grace_ms=in_s * 1_000, stopping_for=waiter)
    return ledger.accept(order, Stopping)


def resume(ledger: Ledger, lease: int, *, waiter: int = 7) -> Resumed:
    """The request no longer needs the lease's room."""
    return ledger.accept(ResumeLease(reservation_id=lease, stopping_for=waiter), Resumed)


def test_the_next_heartbeat_says_drain_with_the_deadline(ledger: Ledger) -> None:
    """It is told why and by when, is charged as ever, and signalled at once."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    ledger.wait(s=5)
    answer = ledger.accept(Beat(lease, 2, 15_000), BeatResult)
    assert (answer.decision, answer.reason) == ("drain", "preempted")
    assert (answer.expires_in_ms, answer.signal_in_ms) == (25_000, 0)
    assert answer.settled == 150_000


def test_no_renewal_goes_beyond_the_deadline(ledger: Ledger) -> None:
    """However often it reports, the lease ends where it was told to, and the hold comes back."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    for seq in range(2, 7):
        ledger.wait(s=5)
        answer = ledger.accept(Beat(lease, seq, 10_000 + (seq - 1) * 5_000), BeatResult)
        assert answer.decision == "drain"
        assert answer.expires_in_ms == 30_000 - (seq - 1) * 5_000
    ledger.wait(s=5)
    answer = ledger.accept(Beat(lease, 7, 40_000), BeatResult)
    assert (answer.decision, answer.state) == ("stop", ReservationState.EXPIRED)
    assert ledger.account("acme").reserved == 0


def test_a_lease_that_is_shorter_than_the_grace_is_renewed_within_it(ledger: Ledger) -> None:
    """The order gives half a minute, whatever the window: beats renew it up to there."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", window_ms=10_000).reservation_id
    stop(ledger, lease, in_s=30)
    for seq, left_ms in enumerate([10_000, 10_000, 10_000, 6_000], start=1):
        ledger.wait(s=6)
        assert ledger.accept(Beat(lease, seq, seq * 6_000), BeatResult).expires_in_ms == left_ms


def test_an_order_shortens_the_lease_at_once(ledger: Ledger) -> None:
    """Heard of or not: a silent node's lease lapses with its grace, and its hold is free."""
    lease = running(ledger)
    assert stop(ledger, lease, in_s=30).stops_at == ledger.now + 30 * SECOND
    assert ledger.reservation(lease).expires_at == ledger.now + 30 * SECOND
    ledger.wait(s=29)
    assert ledger.reservation(lease).state is ReservationState.ACTIVE
    ledger.wait(s=1)
    assert ledger.reservation(lease).state is ReservationState.EXPIRED
    assert ledger.account("acme").reserved == 0


def test_an_order_never_prolongs_a_lease(ledger: Ledger) -> None:
    """A lease whose window ends before the grace does lapses there if its node is silent."""
    lease = running(ledger)
    before = ledger.reservation(lease).expires_at
    stop(ledger, lease, in_s=600)
    assert ledger.reservation(lease).expires_at == before


def test_an_order_without_grace_ends_the_lease(ledger: Ledger) -> None:
    """The hold goes back in the same transaction, and the next beat says stop."""
    lease = running(ledger)
    stop(ledger, lease, in_s=0)
    assert ledger.stored.reservations[lease].state is ReservationState.EXPIRED
    assert ledger.stored.accounts[ledger.account("acme").account_id].reserved == 0
    assert ledger.accept(Beat(lease, 2, 10_000), BeatResult).decision == "stop"


def test_the_earlier_order_stands(ledger: Ledger) -> None:
    """A later deadline changes nothing but for whom, an earlier one does."""
    lease = running(ledger)
    first = stop(ledger, lease, in_s=30).stops_at
    assert stop(ledger, lease, in_s=60, waiter=8).stops_at == first
    assert ledger.reservation(lease).stopping_for == 8
    assert stop(ledger, lease, in_s=20).stops_at == first - 10 * SECOND
    assert ledger.reservation(lease).expires_at == first - 10 * SECOND


def test_a_repeated_heartbeat_hears_of_it_too(ledger: Ledger) -> None:
    """A beat that was counted before says drain and why, and charges nothing."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    ledger.wait(s=20)
    answer = ledger.accept(Beat(lease, 1, 10_000), BeatResult)
    assert (answer.decision, answer.reason, answer.duplicate) == ("drain", "preempted", True)
    assert answer.expires_in_ms == 10_000


@pytest.mark.parametrize("hears", [True, False])
def test_an_order_that_is_taken_back_restores_the_lease(ledger: Ledger, *, hears: bool) -> None:
    """It ends where its hold pays for it from its last beat on, and its node hears continue."""
    lease = running(ledger)
    last_beat, seq = ledger.now, 2
    stop(ledger, lease, in_s=30)
    ledger.wait(s=10)
    if hears:
        assert ledger.accept(Beat(lease, seq, 20_000), BeatResult).decision == "drain"
        last_beat, seq = ledger.now, 3
    ledger.wait(s=10)
    assert resume(ledger, lease).expires_at == last_beat + 120 * SECOND
    known = ledger.reservation(lease)
    assert (known.stopping_at, known.stopping_for, known.why) == (0, 0, "")
    ledger.wait(s=10)  # the deadline of the order
    answer = ledger.accept(Beat(lease, seq, 40_000), BeatResult)
    assert (answer.decision, answer.reason, answer.expires_in_ms) == ("continue", "", 120_000)


def test_an_order_given_again_for_another_request_is_not_taken_back(ledger: Ledger) -> None:
    """Only the request that the lease makes room for now can be the one that is gone."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    stop(ledger, lease, in_s=30, waiter=8)
    assert resume(ledger, lease, waiter=7).expires_at == ledger.now + 30 * SECOND
    assert ledger.accept(Beat(lease, 2, 10_000), BeatResult).decision == "drain"


def test_a_lease_that_has_to_go_anyway_is_not_prolonged(ledger: Ledger) -> None:
    """Its account was suspended meanwhile: it keeps the end it has, and drains for that reason."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    ledger.accept(UpdateAccount(path="acme", status=Status.SUSPENDED), AccountSaved)
    end = ledger.reservation(lease).expires_at
    assert resume(ledger, lease).expires_at == end
    assert ledger.reservation(lease).why == "account_suspended"
    answer = ledger.accept(Beat(lease, 2, 10_000), BeatResult)
    assert (answer.decision, answer.reason) == ("drain", "account_suspended")


def test_a_lease_without_credits_goes_on_as_far_as_its_hold_pays(ledger: Ledger) -> None:
    """It drained for want of credits before the order; it still does, where its hold ends."""
    ledger.grant("acme", CREDIT)
    lease = ledger.lease("acme", window_ms=60_000).reservation_id
    ledger.wait(s=50)
    answer = ledger.accept(Beat(lease, 1, 50_000), BeatResult)
    assert (answer.decision, answer.expires_in_ms) == ("drain", 50_000)
    stop(ledger, lease, in_s=10)
    assert resume(ledger, lease).expires_at == ledger.now + 50 * SECOND
    answer = ledger.accept(Beat(lease, 1, 50_000), BeatResult)
    assert (answer.decision, answer.reason) == ("drain", "insufficient_credits")


def test_only_a_live_lease_can_be_stopped(ledger: Ledger) -> None:
    """What has ended, or never was, is refused."""
    lease = running(ledger)
    ledger.accept(Settle(reservation_id=lease), Closed)
    for command in (StopLease, ResumeLease):
        for number, reason in (
            (lease, Reason.RESERVATION_ENDED),
            (99, Reason.RESERVATION_UNKNOWN),
        ):
            assert ledger.reason(command(reservation_id=number, stopping_for=7)) is reason
