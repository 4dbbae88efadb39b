"""What a report may charge: never more than was authorised.

A lease has authorised what it holds and what it was promised as an overdraft. A report of more,
such as one after a long pause, may charge as much more as every bound still allows now: the credits
of the payer down to its floor, the lease's ``max_amount``, the cap on its job, and the room in
every window of a quota. Rate limits are flow control and bound no charge.

Owns: cutting the use that a report is charged for. The cut is not lost: use is cumulative, so a
later report charges it where the bounds then allow.
Must not: move money or count.
"""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book, NotInBook
from gpucredits.core.limits import NO_CAP, LimitChain
from gpucredits.core.money import cost, time_covered_ms
from gpucredits.core.quota import Counter, Quota
from gpucredits.core.reservation import BEYOND_AUTHORISED, NO_PART, Reservation, job_cap
from gpucredits.core.rules.leases.renewals import look_closely
from gpucredits.core.rules.upkeep.counting import divide, share_of_slice


def within_authorised(  # a report, and what is believed of it so far
    book: Book, payer: Account, lease: Reservation, used_ms: int, flag: str, now: int
) -> tuple[int, str]:
    """The use that a report is charged for, and a flag where that is less than was reported."""
    rate = lease.rate
    due = cost(rate, used_ms) - lease.settled
    if due <= lease.ahead:
        return used_ms, flag
    most = max(bounded(book, payer, lease, due, now), lease.ahead)
    if due <= most:
        return used_ms, flag
    return time_covered_ms(rate, lease.settled + most), BEYOND_AUTHORISED


def bounded(book: Book, payer: Account, lease: Reservation, due: int, now: int) -> int:
    """How much of ``due`` every bound allows now, what the lease has authorised included."""
    lane = look_closely(book, lease, now) if book.gated else None
    most = min(due, lease.ahead + max(payer.spendable, 0))
    most = min(most, job_cap(lease, lane.cap if lane else NO_CAP) - lease.settled)
    if lane is None:
        return most
    if lease.cap_part != NO_PART:
        most = min(most, left_of_part(book, lease, lane, most, now))
    for counter, limit, quota in lane.windows:
        room = limit - counter.used - counter.held + lease.ahead
        most = min(most, fitting(quota, counter, most, room, lease.beat_at, now))
    return most


def left_of_part(book: Book, lease: Reservation, lane: LimitChain, asked: int, now: int) -> int:
    """What a lease of several may still cost of its job's cap, which is divided anew if need be."""
    if lease.cap_seen != lane.caps_sum or lease.settled + asked > lease.cap_part:
        if book.partial:
            raise NotInBook
        divide(book, lease, lane, lease.settled, asked, now)
    return NO_CAP if lease.cap_part == NO_PART else lease.cap_part - lease.settled


def fitting(quota: Quota, counter: Counter, due: int, room: int, since: int, now: int) -> int:
    """The most of ``due`` whose share in the window that is open has room there.

    A slice that began in an earlier window counts in this one only in part.
    """
    if share_of_slice(quota, counter, due, since, now) <= room:
        return due
    least, beyond = min(max(room, 0), due), due
    while beyond - least > 1:
        middle = (least + beyond) // 2
        if share_of_slice(quota, counter, middle, since, now) <= room:
            least = middle
        else:
            beyond = middle
    return least
