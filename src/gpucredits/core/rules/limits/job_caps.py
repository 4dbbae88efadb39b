"""The cap on one job, however many leases it has: what is left of it, and which lease may use it.

A job that has one lease, and never had another, may use its cap as it goes. As soon as there is
another, each of them is given a part: what it has cost and holds, and of what is free so much as
its rate is of theirs. A lease that comes to the end of its part asks again, and then what the
others have left over is divided anew. So no beat has to know of other leases, and all of them
together never go beyond the cap.

Owns: the parts of leases.
Must not: refuse anything (gates do), or take from a lease what it holds.
"""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book, NotInBook
from gpucredits.core.limits import NO_CAP, LimitChain
from gpucredits.core.quota import JobLeases, Quota
from gpucredits.core.reservation import NO_PART, Decision, Reservation
from gpucredits.core.rules.upkeep.counting import add_leases, job_row, lane_of


def taken_of_cap(book: Book, lease: Reservation, quota: Quota) -> int:
    """What the other leases of a job have cost, and those that run may use before they report."""
    row = job_row(book, lease, quota.gpu_type)
    return row.settled + sum(each.settled + each.ahead for each in others(book, lease, row.leases))


def others(book: Book, lease: Reservation, leases: tuple[int, ...]) -> list[Reservation]:
    """The live leases of a job but one."""
    return [book.reservations[each] for each in leases if each != lease.reservation_id]


def left_of_cap(book: Book, lease: Reservation, lane: LimitChain) -> int:
    """What the job's other leases leave of its caps."""
    return min(
        (max(limit - taken_of_cap(book, lease, quota), 0) for limit, quota in lane.caps),
        default=NO_CAP,
    )


def part_of_cap(
    book: Book, lease: Reservation, lane: LimitChain, settled: int, wanted: int, now: int
) -> int:
    """The most that a lease of several may cost, which is asked for anew where it is used up."""
    if not lane.caps:
        lease.cap_part, lease.cap_seen = NO_PART, 0
        return NO_CAP
    is_idle = settled == lease.settled and lease.decision is Decision.DRAIN  # and knows it ends
    if lease.cap_seen != lane.caps_sum or (settled + wanted >= lease.cap_part and not is_idle):
        if book.partial:
            raise NotInBook
        divide(book, lease, lane, settled, wanted, now)
    return NO_CAP if lease.cap_part == NO_PART else lease.cap_part


def divide(
    book: Book, lease: Reservation, lane: LimitChain, settled: int, wanted: int, now: int
) -> None:
    """Give a lease that has settled so much its part of the cap, and the others theirs."""
    if not lane.caps:
        return
    siblings: dict[int, Reservation] = {}
    for _, quota in lane.caps:
        row = job_row(book, lease, quota.gpu_type)
        siblings |= {each.reservation_id: each for each in others(book, lease, row.leases)}
    book.touch(lease)
    if not any(taken_of_cap(book, lease, quota) for _, quota in lane.caps) and not siblings:
        lease.cap_part, lease.cap_seen = NO_PART, 0
        return
    free = max(left_of_cap(book, lease, lane) - settled, 0)
    rates = sum(each.rate_per_hour for each in siblings.values())
    mine = free * lease.rate_per_hour // max(lease.rate_per_hour + rates, 1) if rates else free
    mine = max(mine, min(wanted, free))
    lease.cap_part, lease.cap_seen = settled + mine, lane.caps_sum
    for each in siblings.values():
        book.touch(each)
        theirs = lane_of(book, each, now)
        part = (free - mine) * each.rate_per_hour // max(rates, 1)
        if each.gpu_type != lease.gpu_type:
            part = min(part, part_of_type(book, each, theirs))
        each.cap_part = each.settled + each.ahead + part
        each.cap_seen = theirs.caps_sum


def part_of_type(book: Book, lease: Reservation, lane: LimitChain) -> int:
    """What a lease may have of what is free of caps that only leases of its GPU type meet."""
    part = NO_CAP
    for limit, quota in lane.caps:
        if quota.gpu_type:
            row = job_row(book, lease, quota.gpu_type)
            alike = [book.reservations[each] for each in row.leases]
            free = limit - row.settled - sum(each.settled + each.ahead for each in alike)
            rates = sum(each.rate_per_hour for each in alike)
            part = min(part, max(free, 0) * lease.rate_per_hour // max(rates, 1))
    return part


def begin_anew(book: Book, account: Account, quota: Quota, live: list[Reservation]) -> None:
    """A cap is new: every lease asks for its part of it with its next beat."""
    for lease in live:
        book.touch(lease)
        lease.cap_part = lease.settled + lease.ahead
        lease.cap_seen = NO_PART
    prefix = f"{account.path}/"
    jobs: dict[tuple[int, str], list[Reservation]] = {}
    for lease in book.reservations.values():
        if quota.gpu_type in ("", lease.gpu_type) and f"{lease.account}/".startswith(prefix):
            jobs.setdefault((lease.account_id, lease.job_id), []).append(lease)
    for job, leases in jobs.items():
        known = book.limits.jobs.get((*job, quota.gpu_type))
        if known is None:
            known = JobLeases(*job, quota.gpu_type)
            book.learn(known)
        book.touch(known)
        counted = JobLeases(*job, quota.gpu_type)
        add_leases(counted, leases)
        known.live, known.leaving, known.leases = counted.live, counted.leaving, counted.leases
        known.settled = max(known.settled, counted.settled)  # leases that are gone may not be here
