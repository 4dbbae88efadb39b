"""A lease that is told to stop: when its node learns of it, and how far it still runs."""

from __future__ import annotations

import pytest

from gpucredits.core.command import Settle, StopLease
from gpucredits.core.heartbeat import Beat, Beaten
from gpucredits.core.outcome import Closed, Stopping
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
    """An order to stop, with that much grace."""
    order = StopLease(
        reservation_id=lease, stops_at=ledger.now + in_s * SECOND, grace_ms=max(in_s, 0) * 1_000
    )
    return ledger.accept(order, Stopping)


def test_the_next_heartbeat_says_drain_with_the_deadline(ledger: Ledger) -> None:
    """It is told why and by when, is charged as ever, and signalled at once."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    ledger.wait(s=5)
    answer = ledger.accept(Beat(lease, 2, 15_000), Beaten)
    assert (answer.decision, answer.reason) == ("drain", "preempted")
    assert (answer.expires_in_ms, answer.signal_in_ms) == (30_000, 0)
    assert answer.settled == 150_000


def test_no_renewal_goes_beyond_the_deadline(ledger: Ledger) -> None:
    """However often it reports, the lease ends where it was told to, and the hold comes back."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    for seq in range(2, 8):
        ledger.wait(s=5)
        answer = ledger.accept(Beat(lease, seq, 10_000 + (seq - 1) * 5_000), Beaten)
        assert answer.decision == "drain"
        assert answer.expires_in_ms == 35_000 - (seq - 1) * 5_000
    ledger.wait(s=5)
    answer = ledger.accept(Beat(lease, 8, 45_000), Beaten)
    assert (answer.decision, answer.state) == ("stop", ReservationState.EXPIRED)
    assert ledger.account("acme").reserved == 0


@pytest.mark.parametrize(("after_s", "left_s"), [(60, 30), (100, 20)])
def test_the_grace_counts_from_the_heartbeat_that_says_so(
    ledger: Ledger, after_s: int, left_s: int
) -> None:
    """A node that reports late has its grace all the same, up to where its lease ends anyway."""
    lease = running(ledger)
    stop(ledger, lease, in_s=30)
    ledger.wait(s=after_s)
    answer = ledger.accept(Beat(lease, 2, (10 + after_s) * 1_000), Beaten)
    assert (answer.decision, answer.reason) == ("drain", "preempted")
    assert answer.expires_in_ms == left_s * 1_000
    ledger.wait(s=left_s - 5)
    answer = ledger.accept(Beat(lease, 3, (5 + after_s + left_s) * 1_000), Beaten)
    assert (answer.decision, answer.expires_in_ms) == ("drain", 5_000), "once told, it stands"


def test_a_lease_that_is_shorter_than_the_grace_is_renewed_within_it(ledger: Ledger) -> None:
    """The order gives half a minute, whatever the window: beats renew it up to there."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", window_ms=10_000).reservation_id
    stop(ledger, lease, in_s=30)
    for seq, left_ms in enumerate([10_000, 10_000, 10_000, 6_000], start=1):
        ledger.wait(s=6)
        assert ledger.accept(Beat(lease, seq, seq * 6_000), Beaten).expires_in_ms == left_ms


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
    ledger.wait(s=50)
    answer = ledger.accept(Beat(lease, 1, 10_000), Beaten)
    assert (answer.decision, answer.reason, answer.duplicate) == ("drain", "preempted", True)
    assert answer.expires_in_ms == 30_000, "as long as it has from when it is told"


def test_only_a_live_lease_can_be_stopped(ledger: Ledger) -> None:
    """What has ended, or never was, is refused."""
    lease = running(ledger)
    ledger.accept(Settle(reservation_id=lease), Closed)
    at = ledger.now
    assert ledger.reason(StopLease(reservation_id=lease, stops_at=at)) is Reason.RESERVATION_ENDED
    assert ledger.reason(StopLease(reservation_id=99, stops_at=at)) is Reason.RESERVATION_UNKNOWN
