"""Limits and budgets as a book is filled with them.

Owns: what their stored rows look like as rows of the core; see open_gates for what is read when.
Must not: decide anything or write (gates_save does).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpucredits.core.authority import Authority
from gpucredits.core.boost import Boost
from gpucredits.core.budget import Budget, BudgetPeriod, Rollover
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally
from gpucredits.core.reservation import Exhaustion, Reservation, Why
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.store.book.cached_book import CachedBook, StoredRow

NO_CALENDAR = -1
FIXED_TERMS = 15  # of a lease that is not plain; lists of varying length follow
DIMENSIONS = tuple(Dimension)
CALENDARS = tuple(Calendar)
ROLLOVERS = tuple(Rollover)
EXHAUSTIONS = tuple(Exhaustion)
WHYS = tuple(Why)
AUTHORITIES = tuple(Authority)


def calendar_of(number: int) -> Calendar | None:
    """A calendar as stored; there may be none."""
    return None if number == NO_CALENDAR else CALENDARS[number]


def full_lease_us(lease: Reservation) -> int:
    """How long before its end a lease that was renewed in full had its last beat."""
    return lease.window_ms * (1 + lease.escrow_windows) * 1_000


def fill_terms(lease: Reservation, terms: Sequence[int]) -> bool:
    """What is special about a lease that is not plain; whether a renewal may change some of it."""
    (
        beat_at,
        exhaustion,
        lease.grace_ms,
        lease.overdraft,
        lease.overdrawn,
        leaving,
        stop,
        why,
        lease.promised,
        lease.cap_part,
        lease.cap_seen,
        lease.clears_at,
        lease.stopping_for,
        lease.authorised,
        numbers_kept,
    ) = terms[:FIXED_TERMS]
    kept_to = FIXED_TERMS + numbers_kept
    lease.kept = triples(terms[FIXED_TERMS:kept_to])
    lease.payers = pairs(terms[kept_to:])
    renewed_at = lease.expires_at - full_lease_us(lease)
    lease.exhaustion = EXHAUSTIONS[exhaustion]
    lease.leaving = leaving == 1
    lease.beat_at = max(beat_at, renewed_at)
    lease.stopping_at, lease.why = stop, WHYS[why]
    if lease.cap_part >= 0:
        return True
    return bool(
        lease.overdraft
        or lease.overdrawn
        or leaving
        or stop
        or beat_at > renewed_at
        or lease.kept
        or lease.payers
    )


def pairs(flat: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Two by two, from the flat list that is stored."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def triples(flat: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """Three by three, from the flat list that is stored."""
    return tuple(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def is_plain(lease: Reservation) -> bool:
    """Whether a lease's ordinary columns say all there is to say of it."""
    return (
        lease.beat_at == lease.expires_at - full_lease_us(lease)
        and lease.exhaustion is Exhaustion.DRAIN
        and not (lease.grace_ms or lease.overdraft or lease.overdrawn or lease.leaving)
        and not lease.stopping_at
        and not lease.why
        and lease.cap_part < 0
        and not (lease.authorised or lease.kept or lease.payers)
    )


def fill_quota(page: CachedBook, row: StoredRow) -> None:
    """A quota that has not ended, and what it counts."""
    book = page.book
    book.gated = True
    limits = book.limits
    quota_id, account_id = row[2], row[3]
    known = limits.quotas.get(account_id)
    if known is not None and any(each.quota_id == quota_id for each in known):
        return
    limits.lanes.clear()
    page.owners[quota_id] = account_id
    quota = Quota(
        quota_id,
        account_id,
        DIMENSIONS[row[4]],
        row[5],
        row[21],
        calendar_of(row[6]),
        row[22],
        row[7],
        row[8],
        0,
        row[9],
        row[10],
        AUTHORITIES[row[18]],
    )
    if known is None:
        limits.quotas[account_id] = [quota]
    else:
        known.append(quota)
    if row[11] is not None:
        limits.counters[quota_id] = Counter(quota_id, *row[11:18])
    if quota.dimension is Dimension.CREDITS_PER_WINDOW:
        page.fresh_until = min(page.fresh_until, row[17])


def fill_tally(page: CachedBook, row: StoredRow) -> None:
    """A window, or a cell of one, that is over."""
    known = page.book.limits.tallies.setdefault(row[2], {})
    if row[3] not in known:
        known[row[3]] = Tally(row[2], row[3], row[4], row[5])


def fill_job(page: CachedBook, row: StoredRow) -> None:
    """The leases of one GPU type that a job has; those of any type are added up.

    Or, where a node is named, a live lease of the job on that node.
    """
    if row[23] is not None:
        fill_node(page, row)
        return
    account_id, live, leaving, settled, job_id, leases = *row[2:6], row[21], row[24]
    page.passing = True
    jobs = page.book.limits.jobs
    if live is None:  # none of any type
        jobs.setdefault((account_id, job_id, ""), JobLeases(account_id, job_id, ""))
        return
    for gpu_type in ("", row[22]):
        key = (account_id, job_id, gpu_type)
        known = jobs.get(key)
        if known is None:
            known = jobs[key] = JobLeases(*key)
        known.live += live
        known.leaving += leaving
        known.settled += settled
        known.leases += tuple(leases)


def fill_node(page: CachedBook, row: StoredRow) -> None:
    """A live lease of a job that is asked for, on its node or ''; a row of none begins anew."""
    on_nodes = page.book.on_nodes
    if row[2]:
        on_nodes[row[2], row[21], row[23]] = (row[3], row[4])
    else:
        on_nodes.clear()


def fill_bucket(page: CachedBook, row: StoredRow) -> None:
    """A rate limit, or the last one that ended, where another may be set."""
    limits = page.book.limits
    bucket = TokenBucket(*row[2:9])
    bucket.set_by = AUTHORITIES[row[10]]
    if row[9]:
        bucket.ended_at = row[9]
        limits.index(bucket)
        return
    page.book.gated = True
    if row[3] not in limits.buckets:
        limits.buckets[row[3]] = bucket
        page.terms[bucket.bucket_id] = terms_of(bucket)
        limits.lanes.clear()


def terms_of(bucket: TokenBucket) -> tuple[int, int, int, int]:
    """What of a rate limit changes rarely, so that it is written only when it did."""
    return bucket.capacity, bucket.refill_per_hour, bucket.ended_at, bucket.set_by


def fill_boost(page: CachedBook, row: StoredRow) -> None:
    """A boost that has not lapsed, or whose lapse its bucket has not seen."""
    boost = Boost(
        boost_id=row[2],
        account_id=row[3],
        target_id=row[4],
        amount=row[5],
        refill_per_hour=row[6],
        starts_at=row[7],
        ends_at=row[8],
        created_at=row[9],
        note=row[21],
        set_by=AUTHORITIES[row[10]],
    )
    limits = page.book.limits
    known = limits.boosts.setdefault(boost.target_id, [])
    if all(each.boost_id != boost.boost_id for each in known):
        known.append(boost)
        limits.lanes.clear()


def fill_budget(page: CachedBook, row: StoredRow) -> None:
    """A budget, whether or not it has ended."""
    budget = Budget(
        budget_id=row[2],
        account_id=row[3],
        allowance=row[4],
        next_at=row[5],
        calendar=calendar_of(row[6]),
        ends_at=row[7],
        rollover=ROLLOVERS[row[8]],
        rollover_cap=row[9],
        rollover_us=row[10],
        priority=row[11],
        created_at=row[12],
        name=row[21],
        zone=row[22],
        warn_percent=tuple(row[24]),
    )
    page.passing = True
    page.book.budgets.setdefault(budget.account_id, []).append(budget)


def period_of(row: Sequence[Any]) -> BudgetPeriod:
    """A period as its columns are stored."""
    period = BudgetPeriod(*row[:8])
    period.rollover, period.rollover_cap, period.rollover_us = ROLLOVERS[row[8]], row[9], row[10]
    period.calendar, period.zone = calendar_of(row[11]), row[12]
    return period


def fill_period(page: CachedBook, row: StoredRow) -> None:
    """The last period of a budget."""
    period = period_of((*row[2:14], row[21]))
    page.passing = True
    page.book.periods.setdefault(period.budget_id, []).append(period)
    known = (period.budget_id, period.starts_at, period.warned_percent)
    page.warned = (*page.warned, known)
