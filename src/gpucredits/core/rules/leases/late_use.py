"""Use that is reported after a lease lapsed.

A launcher that obeys its deadline ends the job and then reports. What it used inside the lease is
charged: up to the lapse, up to what was authorised when the lease lapsed, and for a bounded time.
Other leases of its job may have used the job's cap since; the cap holds for all of them together.

Owns: how much of a late report is charged, and that the job's other leases see it.
Must not: move money (heartbeats do).
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.book import Book, NotInBook
from gpucredits.core.limits import NO_CAP, LimitChain
from gpucredits.core.money import time_covered_ms
from gpucredits.core.reservation import NO_PART, Reservation, ReservationState, elapsed_ms
from gpucredits.core.rules.upkeep.counting import job_row, lane_of, others, taken_of_cap


def late_ms(  # a report, and whose
    book: Book, lease: Reservation, seq: int, used_ms: int, now: int
) -> tuple[int, int]:
    """The reported use up to the lapse, and the total use to charge.

    Both are 0 if the lease did not lapse or the report was accepted before.
    """
    if lease.state is not ReservationState.EXPIRED or seq <= lease.seq:
        return 0, 0
    told_ms = min(used_ms, elapsed_ms(lease, lease.expires_at))
    if now - lease.ended_at > bounds.LATE_USE_US_MAX:
        return told_ms, 0
    rate = lease.rate
    if told_ms <= lease.used_ms or not rate:
        return told_ms, told_ms
    most = lease.authorised
    if book.gated and (lane := lane_of(book, lease, now)).caps:
        if book.partial:
            raise NotInBook
        most = min(most, cap_of(book, lease, lane))
    return told_ms, min(told_ms, time_covered_ms(rate, most))


def cap_of(book: Book, lease: Reservation, lane: LimitChain) -> int:
    """The most that a lease which has ended may cost by the caps on its job.

    The row of a job counts the lease itself. The only lease of a job may have no row.
    """
    most = NO_CAP
    for limit, quota in lane.caps:
        left = limit - taken_of_cap(book, lease, quota)
        if (lease.account_id, lease.job_id, quota.gpu_type) in book.limits.jobs:
            left = max(left, 0) + lease.settled
        most = min(most, max(left, lease.settled))
    return most


def tell_job(book: Book, lease: Reservation, due: int, now: int) -> None:
    """Let the other leases of a job see what one that has ended cost in addition.

    Those that run ask for their part of what is left with their next beat.
    """
    lane = lane_of(book, lease, now)
    running = siblings(book, lease, lane)
    for gpu_type in ("", lease.gpu_type):
        row = book.limits.jobs.get((lease.account_id, lease.job_id, gpu_type))
        if row is not None:
            book.touch(row)
            row.settled += due
    for each in running:
        book.touch(each)
        each.cap_part = each.settled + each.ahead
        each.cap_seen = NO_PART


def siblings(book: Book, lease: Reservation, lane: LimitChain) -> list[Reservation]:
    """The live leases that share a cap with one that has ended."""
    found: dict[int, Reservation] = {}
    for _, quota in lane.caps:
        row = job_row(book, lease, quota.gpu_type)
        found |= {each.reservation_id: each for each in others(book, lease, row.leases)}
    return list(found.values())
