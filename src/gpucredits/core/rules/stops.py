"""Rules of preemption: a lease is told to stop, and by when.

Owns: the order to stop. What a node was promised is not taken back behind its back: the lease ends
early only from the heartbeat on that says so, a grace later, and a node that falls silent ends with
its lease.
Must not: choose whose work stops (fair share does).
"""

from __future__ import annotations

from gpucredits.core.book import Book
from gpucredits.core.command import StopLease
from gpucredits.core.outcome import Stopping
from gpucredits.core.reasons import LEASE_UNKNOWN, Refused
from gpucredits.core.reservation import Decision, ReservationState, Why
from gpucredits.core.rules.reservations import ended
from gpucredits.core.rules.roll import roll


def stop_lease(book: Book, command: StopLease, now: int) -> Stopping | Refused:
    """Order a live lease to end; of two orders the earlier one stands."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    roll(book, book.accounts[lease.payer_id], now)
    if lease.state is not ReservationState.ACTIVE:
        return ended(lease)
    stops_at = max(command.stops_at, now)
    if not lease.stopping_at or stops_at < lease.stopping_at:
        book.touch(lease)
        lease.stopping_at = stops_at
        lease.stop_grace_ms = command.grace_ms
        lease.decision, lease.why, lease.clears_at = Decision.DRAIN, Why.PREEMPTED, 0
    return Stopping(lease.reservation_id, lease.stopping_at)
