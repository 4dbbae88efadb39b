"""How leases count against the limits on their way: when they start, spend and end.

Owns: every change of a quota's counters and of a bucket's tokens by a lease, and the parts that
leases have of the cap on their job. What a lease has authorised so far (settled, held and promised
as an overdraft) is what it has drawn; its end gives back what it did not use.
Must not: refuse anything (gates do), or take from a lease what it holds; charges are counted even
where a limit is full.

A job that has one lease, and never had another, may use its cap as it goes. As soon as there is
another, each of them is given a part: what it has cost and holds, and of what is free so much as
its rate is of theirs. A lease that comes to the end of its part asks again, and then what the
others have left over is divided anew. So no beat has to know of other leases, and all of them
together never go beyond the cap.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpucredits.core.account import Account, lineage
from gpucredits.core.book import Book, NotInBook, invariant
from gpucredits.core.bounds import HOUR_US
from gpucredits.core.limits import NO_CAP, BucketTerms, LimitChain, advance, bucket_terms
from gpucredits.core.quota import (
    Counter,
    Dimension,
    JobLeases,
    Quota,
    Tally,
    reach,
    spread,
    window_at,
)
from gpucredits.core.reservation import NO_PART, Decision, Reservation, ReservationState

GPUS = Dimension.CONCURRENT_GPUS


def lane_of(book: Book, lease: Reservation, now: int) -> LimitChain:
    """Every limit that a lease meets, org first."""
    ids = tuple(book.paths[path].account_id for path in reversed(lineage(lease.account)))
    return book.limits.lane(ids, lease.gpu_type, now)


def pass_in_full(
    book: Book, lease: Reservation, due: int, reserve: int, settled_and_held: int, now: int
) -> bool:
    """Count a beat against every limit on its way, if all have room for it without a closer look.

    The same as ``count_slice`` wherever it applies; otherwise changes nothing that matters and
    returns False. Only for a book without a savepoint.
    """
    lane = book.limits.lanes.get((lease.account_id, lease.gpu_type))
    if lane is None:
        lane = lane_of(book, lease, now)
    if (
        now >= lane.until
        or lease.beat_at < lane.since
        or settled_and_held >= lane.cap
        or (
            lease.cap_part >= 0
            and (settled_and_held >= lease.cap_part or lease.cap_seen != lane.caps_sum)
        )
    ):
        return False
    counters, rooms = lane.counters, lane.rooms
    for place in range(len(counters)):  # zip(strict=True) is not compiled
        counter = counters[place]
        if counter.used + counter.held + reserve > rooms[place]:
            return False
    if lane.buckets and not draw_in_full(lane, reserve, now):
        return False
    ahead = reserve - due
    for counter in counters:
        counter.used += due
        counter.held += ahead
    if lane.noted_in is not book.moved:
        book.moved.append(lane)
        lane.noted_in = book.moved
    return True


def draw_in_full(lane: LimitChain, amount: int, now: int) -> bool:
    """Draw from every bucket of a lane, or from none."""
    for index, (bucket, capacity, refill) in enumerate(lane.buckets):
        level = bucket.level
        there = level + (bucket.fraction + refill * (now - bucket.level_at)) // HOUR_US
        if there >= capacity:
            level = there = capacity
            bucket.level_at = now
            bucket.fraction = 0
        if there < amount:
            bucket.level = level
            for drawn, _, _ in lane.buckets[:index]:
                drawn.level += amount
            return False
        bucket.level = level - amount
    return True


def enter(book: Book, lease: Reservation, now: int) -> None:
    """A lease starts: it takes its slots, and its hold is held and drawn."""
    bring_forward(book, lease, now)
    lane = lane_of(book, lease, now)
    for row in capped_rows(book, lease, lane):
        row.leases += (lease.reservation_id,)
    jobs = count_job(book, lease, lane, 1)
    for counter, _, quota in lane.counts:
        book.touch(counter)
        counter.count += slots(lease, quota, jobs)
    for counter, _, _ in lane.windows:
        book.touch(counter)
        counter.held += lease.held
    take_tokens(book, lane, lease.held, now)


def leave(book: Book, lease: Reservation, now: int) -> None:
    """A lease ends: its slots are free, and what was ahead of it and is not used goes back."""
    if book.partial:
        raise NotInBook
    lane = lane_of(book, lease, now)
    if lease.leaving:
        mark_leaving(book, lease, lane, -1)
    for row in known_rows(book, lease, lane):
        row.leases = tuple(each for each in row.leases if each != lease.reservation_id)
        row.settled += lease.settled
    jobs = count_job(book, lease, lane, -1)
    for counter, _, quota in lane.counts:
        book.touch(counter)
        counter.count -= slots(lease, quota, jobs)
    for counter, _, _ in lane.windows:
        book.touch(counter)
        counter.held -= lease.ahead
    give_back(book, lane, lease, lease.ahead)


def count_slice(  # what is counted, when it is counted, and until when it was used
    book: Book, lease: Reservation, due: int, ahead: int, now: int, until: int
) -> None:
    """A slice is settled and ``ahead`` is what it may use next: count both, in their windows."""
    bring_forward(book, lease, now)
    lane = lane_of(book, lease, now)
    for counter, _, quota in lane.windows:
        book.touch(counter)
        counter.held += ahead - lease.ahead
        add_slice(book, quota, counter, due, lease.beat_at, until)
    newly = ahead - lease.ahead + due
    if newly >= 0:
        take_tokens(book, lane, newly, now)
    else:
        give_back(book, lane, lease, -newly)


def share_of_slice(quota: Quota, counter: Counter, due: int, since: int, now: int) -> int:
    """How much of a slice counts in the window that is open now."""
    if since >= counter.starts_at:
        return due
    oldest = counter.starts_at - reach(quota)
    parts = spread(quota, due, since, now)
    return sum(part for starts_at, _, part in parts if starts_at >= oldest)


def add_slice(book: Book, quota: Quota, counter: Counter, due: int, since: int, now: int) -> None:
    """Count a slice in the window that is open and in those before it that it began in."""
    if since >= counter.starts_at:
        counter.used += due
        return
    oldest = counter.starts_at - reach(quota)
    for starts_at, ends_at, part in spread(quota, due, since, now):
        if starts_at >= counter.starts_at:
            counter.used += part
            continue
        add_to_tally(book, quota, starts_at, ends_at, part)
        if starts_at >= oldest:
            counter.used += part
            counter.base += part


def add_to_tally(book: Book, quota: Quota, starts_at: int, ends_at: int, part: int) -> None:
    """Note what was spent in a window that is over."""
    if not part:
        return
    tally = book.limits.tallies.get(quota.quota_id, {}).get(starts_at)
    if tally is None:
        book.add(Tally(quota.quota_id, starts_at, ends_at, part))
    else:
        book.touch(tally)
        tally.used += part


def bring_forward(book: Book, lease: Reservation, now: int) -> None:
    """Open the windows and the terms that are in force now, on a lease's way."""
    lane = lane_of(book, lease, now)
    for counter, _, quota in lane.windows:
        if now >= counter.ends_at:
            next_window(book, quota, counter, now)
    for bucket, _, _ in lane.buckets:
        book.touch(bucket)
        terms: tuple[BucketTerms, ...] = ()
        if bucket.bucket_id in book.limits.boosts:
            terms = bucket_terms(bucket, book.limits.boosts_of(bucket))
        advance(bucket, terms, now)


def next_window(book: Book, quota: Quota, counter: Counter, now: int) -> None:
    """Close a window that is over, and open the one that ``now`` lies in."""
    book.touch(counter)
    add_to_tally(book, quota, counter.starts_at, counter.ends_at, counter.used - counter.base)
    counter.starts_at, counter.ends_at = window_at(quota, now)
    oldest = counter.starts_at - reach(quota)
    counter.base = sum(
        tally.used
        for tally in book.limits.tallies.get(quota.quota_id, {}).values()
        if oldest <= tally.starts_at < counter.starts_at
    )
    counter.used = counter.base


def take_tokens(book: Book, lane: LimitChain, amount: int, now: int) -> None:
    """Draw what was authorised; where charges outran the tokens, a level falls below zero."""
    for bucket, _, _ in lane.buckets:
        invariant(bucket.level_at >= now, "a bucket is brought forward before it is drawn from")
        book.touch(bucket)
        bucket.level -= amount


def give_back(book: Book, lane: LimitChain, lease: Reservation, amount: int) -> None:
    """Put back what was drawn and is not used.

    A bucket that is younger than the lease gets nothing: what the lease was given before there was
    a limit is not tokens, and from then on it has drawn what it spent. Ids rise within an org.
    """
    for bucket, _, _ in lane.buckets:
        if bucket.bucket_id < lease.reservation_id:
            book.touch(bucket)
            bucket.level += amount


def slots(lease: Reservation, quota: Quota, jobs: dict[str, int]) -> int:
    """How many slots of a quota a lease takes or frees."""
    return lease.milli_gpus if quota.dimension is GPUS else jobs[quota.gpu_type]


def count_job(book: Book, lease: Reservation, lane: LimitChain, change: int) -> dict[str, int]:
    """Note that a lease of a job starts (1) or ended (-1); the slots that the job takes or frees.

    A job of many leases takes one slot, from the start of its first to the end of its last.
    """
    slots_of: dict[str, int] = {}
    for row in job_rows(book, lease, lane):
        row.live += change
        invariant(row.live >= 0, "a job has no fewer than no leases")
        slots_of[row.gpu_type] = 1 if row.live == max(change, 0) else 0
    return slots_of


def mark_leaving(book: Book, lease: Reservation, lane: LimitChain, change: int) -> None:
    """Note that a lease was told to go (1), or that it may stay or is gone (-1)."""
    if book.partial:
        raise NotInBook
    slots_of: dict[str, int] = {}
    for row in job_rows(book, lease, lane):
        row.leaving += change
        slots_of[row.gpu_type] = 1 if row.leaving == max(change, 0) else 0
    for counter, _, quota in lane.counts:
        book.touch(counter)
        counter.leaving += change * slots(lease, quota, slots_of)
    lease.leaving = change > 0


def is_job_leaving(book: Book, lease: Reservation, quota: Quota) -> bool:
    """Whether a lease of the same job, as a quota on jobs counts it, was told to go."""
    if book.partial:
        raise NotInBook
    row = book.limits.jobs.get((lease.account_id, lease.job_id, quota.gpu_type))
    return row is not None and row.leaving > 0


def job_rows(book: Book, lease: Reservation, lane: LimitChain) -> list[JobLeases]:
    """The rows that count the leases of a job for the quotas on jobs in its lane, to be changed."""
    rows: dict[str, JobLeases] = {}
    for _, _, quota in lane.counts:
        if quota.dimension is GPUS or quota.gpu_type in rows:
            continue
        key = (lease.account_id, lease.job_id, quota.gpu_type)
        row = book.limits.jobs.get(key)
        if row is None:
            row = JobLeases(*key)
            book.add(row)
        book.touch(row)
        rows[quota.gpu_type] = row
    return list(rows.values())


def capped_rows(book: Book, lease: Reservation, lane: LimitChain) -> list[JobLeases]:
    """The rows that quotas on credits per job count the leases of a job by, to be changed."""
    rows = []
    for gpu_type in sorted({quota.gpu_type for _, quota in lane.caps}):
        row = job_row(book, lease, gpu_type)
        book.learn(row)
        book.touch(row)
        rows.append(row)
    return rows


def known_rows(book: Book, lease: Reservation, lane: LimitChain) -> list[JobLeases]:
    """Those of them that hold a lease which ends; nobody in this book asks for others."""
    rows = []
    for gpu_type in sorted({quota.gpu_type for _, quota in lane.caps}):
        row = book.limits.jobs.get((lease.account_id, lease.job_id, gpu_type))
        if row is not None and lease.reservation_id in row.leases:
            book.touch(row)
            rows.append(row)
    return rows


def job_row(book: Book, lease: Reservation, gpu_type: str) -> JobLeases:
    """What is known of the leases of a job, but for one that is about to start.

    Whoever fills a book puts in what a job of a reserve has, be it nothing; a book that was never
    filled holds every lease there is, and they are counted.
    """
    jobs = book.limits.jobs
    key = (lease.account_id, lease.job_id, gpu_type)
    if key in jobs:
        return jobs[key]
    row = JobLeases(*key)
    if (lease.account_id, lease.job_id, "") not in jobs:
        others = [
            each
            for each in book.reservations.values()
            if each.account_id == lease.account_id
            and each.job_id == lease.job_id
            and gpu_type in ("", each.gpu_type)
            and each is not lease
        ]
        add_leases(row, others)
    return row


def add_leases(row: JobLeases, leases: Iterable[Reservation]) -> None:
    """Count leases of a job."""
    for lease in leases:
        if lease.state is ReservationState.ACTIVE:
            row.live += 1
            row.leaving += lease.leaving
            row.leases += (lease.reservation_id,)
        else:
            row.settled += lease.settled


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
    rates = sum(each.rate for each in siblings.values())
    mine = free * lease.rate // max(lease.rate + rates, 1) if rates else free
    mine = max(mine, min(wanted, free))
    lease.cap_part, lease.cap_seen = settled + mine, lane.caps_sum
    for each in siblings.values():
        book.touch(each)
        theirs = lane_of(book, each, now)
        part = (free - mine) * each.rate // max(rates, 1)
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
            rates = sum(each.rate for each in alike)
            part = min(part, max(free, 0) * lease.rate // max(rates, 1))
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
