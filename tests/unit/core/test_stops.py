"""A lease that is told to stop: when its node learns of it, and how far it still runs."""

from __future__ import annotations

from gpucredits.core.command import Beat, Settle, StopLease
from gpucredits.core.outcome import Beaten, Closed, Stopping
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import ReservationState
from support.ledger import CREDIT, SECOND, Ledger


def running(ledger: Ledger) -> int:
    """A lease of two minutes that has been renewed once."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", grace_ms=60_000).reservation_id
    ledger.wait(s=10)
    assert ledger.accept(Beat(lease, 1, 10_000), Beaten).decision == "continue"
    return lease


def stop(ledger: Ledger, lease: int, *, in_s: int) -> Stopping:
    """An order to stop."""
    at = ledger.now + in_s * SECOND
    return ledger.accept(StopLease(reservation_id=lease, stops_at=at), Stopping)


def test_the_next_heartbeat_says_drain_with_the_deadline(ledger: Ledger) -> None:
    """It is told why and by when, is charged as ever, and signalled at once."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    ledger.wait(s=5)
    answer = ledger.accept(Beat(lease, 2, 15_000), Beaten)
    assert (answer.decision, answer.reason) == ("drain", "preempted")
    assert (answer.expires_in_ms, answer.signal_in_ms) == (25_000, 0)
    assert answer.settled == 150_000


def test_no_renewal_goes_beyond_the_deadline(ledger: Ledger) -> None:
    """However often it reports, the lease ends where it was told to, and the hold comes back."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    for seq in range(2, 7):
        ledger.wait(s=5)
        answer = ledger.accept(Beat(lease, seq, 10_000 + (seq - 1) * 5_000), Beaten)
        assert answer.decision == "drain"
        assert answer.expires_in_ms == 30_000 - (seq - 1) * 5_000
    ledger.wait(s=5)
    answer = ledger.accept(Beat(lease, 8, 40_000), Beaten)
    assert (answer.decision, answer.state) == ("stop", ReservationState.EXPIRED)
    assert ledger.account("acme").reserved == 0


def test_a_node_that_has_not_heard_keeps_what_it_was_promised(ledger: Ledger) -> None:
    """Without a heartbeat the lease ends when it would have, not at the deadline."""
    lease = running(ledger)
    promised = ledger.reservation(lease).expires_at
    stop(ledger, lease, in_s=30)
    assert ledger.reservation(lease).expires_at == promised
    ledger.wait(s=60)
    assert ledger.reservation(lease).state is ReservationState.ACTIVE
    ledger.wait(s=61)
    assert ledger.reservation(lease).state is ReservationState.EXPIRED


def test_the_earlier_order_stands(ledger: Ledger) -> None:
    """A later deadline changes nothing, an earlier one does; the past means now."""
    lease = running(ledger)
    first = stop(ledger, lease, in_s=30).stops_at
    assert stop(ledger, lease, in_s=60).stops_at == first
    assert stop(ledger, lease, in_s=20).stops_at == first - 10 * SECOND
    assert stop(ledger, lease, in_s=-5).stops_at == ledger.now


def test_a_repeated_heartbeat_hears_of_it_too(ledger: Ledger) -> None:
    """A beat that was counted before says drain and why, and charges nothing."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    answer = ledger.accept(Beat(lease, 1, 10_000), Beaten)
    assert (answer.decision, answer.reason, answer.duplicate) == ("drain", "preempted", True)


def test_only_a_live_lease_can_be_stopped(ledger: Ledger) -> None:
    """What has ended, or never was, is refused."""
    lease = running(ledger)
    ledger.accept(Settle(reservation_id=lease), Closed)
    at = ledger.now
    assert ledger.reason(StopLease(reservation_id=lease, stops_at=at)) is Reason.RESERVATION_ENDED
    assert ledger.reason(StopLease(reservation_id=99, stops_at=at)) is Reason.RESERVATION_UNKNOWN
