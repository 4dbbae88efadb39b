"""Rules of preemption: a lease is told to stop, or may go on after all.

Owns: the order to stop and its withdrawal. An order shortens the lease at once, whether or not its
node has heard of it: a node that falls silent loses its lease when the grace is over.
Must not: choose whose work stops (fair share does).
"""

from __future__ import annotations

from gpucredits.core.book import Book
from gpucredits.core.command import ResumeLease, StopLease
from gpucredits.core.outcome import Resumed, Stopping
from gpucredits.core.reasons import LEASE_UNKNOWN, Refused
from gpucredits.core.reservation import Decision, Reservation, ReservationState, Why, lease_end
from gpucredits.core.rule import Rule, touches_lease
from gpucredits.core.rules.credit.funding import suspension
from gpucredits.core.rules.leases.reservations import ended
from gpucredits.core.rules.upkeep.roll import lapse, roll


def stop_lease(book: Book, command: StopLease, now: int) -> Stopping | Refused:
    """End a live lease after a grace at most; of two orders the earlier deadline stands."""
    lease = live_lease(book, command.reservation_id, now)
    if isinstance(lease, Refused):
        return lease
    stops_at = now + command.grace_ms * 1_000
    book.touch(lease)
    lease.stopping_for = command.stopping_for
    if not lease.stopping_at or stops_at < lease.stopping_at:
        lease.stopping_at = stops_at
        shorten(book, lease, stops_at, now)
    return Stopping(lease.reservation_id, lease.stopping_at)


def shorten(book: Book, lease: Reservation, stops_at: int, now: int) -> None:
    """Let a lease end at an instant if it would end later; one that drains keeps its reason."""
    payer = book.accounts[lease.payer_id]
    book.touch(payer)
    lease.expires_at = min(lease.expires_at, stops_at)
    if lease.decision is not Decision.DRAIN:
        lease.decision, lease.why, lease.clears_at = Decision.DRAIN, Why.PREEMPTED, 0
    if lease.expires_at <= now:
        lease.decision = Decision.STOP
        lapse(book, payer, lease, now, seq=0)
        payer.version += 1
    else:
        payer.due_at = min(payer.due_at, lease.expires_at)


def resume_lease(book: Book, command: ResumeLease, now: int) -> Resumed | Refused:
    """Take an order to stop back, unless it was given again for another request.

    The lease ends where its hold pays for it from its last beat on. A lease that has to go for
    another reason keeps its end, and is told that reason.
    """
    lease = live_lease(book, command.reservation_id, now)
    if isinstance(lease, Refused):
        return lease
    if lease.stopping_at and lease.stopping_for == command.stopping_for:
        book.touch(lease)
        lease.stopping_at = lease.stopping_for = 0
        why = must_go(book, lease, now)
        if why is Why.NONE:
            lease.expires_at = max(lease.expires_at, lease_end(lease, lease.beat_at))
        if lease.why is Why.PREEMPTED:
            lease.why = why
            lease.decision = Decision.DRAIN if why else Decision.CONTINUE
    return Resumed(lease.reservation_id, lease.expires_at)


def must_go(book: Book, lease: Reservation, now: int) -> Why:
    """Why a lease may not run longer than it already could, an order to stop apart."""
    if book.suspended and (paused := suspension(book, lease.account, now)):
        return Why(paused.reason.value)
    return Why.QUOTA_EXCEEDED if lease.leaving else Why.NONE


def live_lease(book: Book, reservation_id: int, now: int) -> Reservation | Refused:
    """A lease that lives, with everything written down that the clock has made due."""
    lease = book.reservations.get(reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    roll(book, book.accounts[lease.payer_id], now)
    return lease if lease.state is ReservationState.ACTIVE else ended(lease)


RULES: tuple[Rule, ...] = (
    Rule(StopLease, stop_lease, touches_lease),
    Rule(ResumeLease, resume_lease, touches_lease),
)
