"""Leases that are extended ahead of a planned stop of the server.

While a maintenance is announced, each report that is renewed in full also extends its lease to the
end of the maintenance, or as far as the payer, its quotas and its rate limits allow. The next
report renews from there: what was held for the extension and not used is free again.

Owns: how far a lease is extended, and the hold for it.
Must not: announce a maintenance, or renew (heartbeats does). An extension never ends or drains
anything: a lease that cannot be extended is simply renewed.
"""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.entry import EntryType
from gpucredits.core.limits import NO_CAP
from gpucredits.core.money import cost, time_covered_ms
from gpucredits.core.reservation import NO_PART, Reservation, job_cap
from gpucredits.core.rules.leases.renewals import look_closely
from gpucredits.core.rules.upkeep.counting import count_slice


def extend(book: Book, payer: Account, lease: Reservation, end: int, now: int) -> int:
    """Hold for as much of the maintenance as can be funded; when the lease then ends.

    ``end`` is when the lease would end otherwise: one full lease after ``now``.
    """
    missing_ms = -((end - book.maintenance_until) // 1_000)
    if missing_ms <= 0 or end < now + lease.lease_ms * 1_000:
        return end
    longest_ms = lease.used_ms + lease.lease_ms + missing_ms
    rate = lease.rate
    more = cost(rate, longest_ms) - lease.settled - lease.held
    allowed = room_for(book, payer, lease, now)
    if more > allowed:
        longest_ms = time_covered_ms(rate, lease.settled + lease.held + allowed)
        more = cost(rate, longest_ms) - lease.settled - lease.held
    extended_ms = longest_ms - lease.used_ms - lease.lease_ms
    if extended_ms <= 0:
        return end
    if book.gated:
        count_slice(book, lease, 0, lease.ahead + more, now, now)
    payer.reserved += more
    lease.held += more
    lease.extended_ms = extended_ms
    book.post(
        EntryType.RESERVE,
        payer,
        more,
        at=now,
        reservation_id=lease.reservation_id,
        seq=lease.seq,
    )
    return end + extended_ms * 1_000


def room_for(book: Book, payer: Account, lease: Reservation, now: int) -> int:
    """How much more a lease may hold: by its payer's credits and by every limit on its way."""
    lane = look_closely(book, lease, now) if book.gated else None
    room = max(payer.spendable, 0)
    room = min(room, job_cap(lease, lane.cap if lane else NO_CAP) - lease.settled - lease.held)
    if lane is None:
        return max(room, 0)
    if lease.cap_part != NO_PART:
        room = min(room, lease.cap_part - lease.settled - lease.held)
    for counter, limit, _ in lane.windows:
        room = min(room, limit - counter.used - counter.held)
    for bucket, _, _ in lane.buckets:
        room = min(room, bucket.level)
    return max(room, 0)
