"""Writing limits and budgets down: what changed of them, in the one statement of a batch.

Owns: what their rows look like when they are stored.
Must not: decide anything, or write what did not change. How many leases a job has is not written:
it is counted from the reservations.
"""

from __future__ import annotations

from gpucredits.core.book import Row
from gpucredits.core.boost import Boost
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally
from gpucredits.core.reasons import invariant
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.changes import Changes
from gpucredits.store.book.limit_parts import (
    BOOSTS,
    BUCKETS,
    BUDGETS,
    GATED_ORGS,
    KEPT_METERS,
    METERS,
    NEW_BOOSTS,
    NEW_BUCKETS,
    NEW_QUOTAS,
    NEW_SLOTS,
    PERIODS,
    QUOTAS,
    SLOTS,
    TALLIES,
)
from gpucredits.store.book.limit_rows import NO_CALENDAR, terms_of
from gpucredits.store.book.sql_batch import numbers

PER_WINDOW = Dimension.CREDITS_PER_WINDOW


def add_gate(changes: Changes, page: CachedBook, row: Row) -> None:
    """A limit or a budget, or what one of them has counted or given out."""
    org_id = page.book.org.org_id
    match row:
        case Counter():
            add_counter(changes, page, row)
        case TokenBucket():
            add_bucket(changes, page, row)
        case JobLeases():
            pass
        case Tally():
            changes.add(TALLIES, (org_id, row.quota_id, row.starts_at, row.ends_at, row.used))
        case Quota():
            add_quota(changes, page, row)
        case Boost():
            add_boost(changes, page, row)
        case Budget():
            page.has_new_budget = not page.budgeted
            add_budget(changes, org_id, row)
        case BudgetPeriod():
            period = (row.budget_id, row.starts_at, row.ends_at, row.allowance, row.grant_id)
            rolled = (row.rolled, row.rolled_grant_id, row.warned_percent)
            ways = (row.rollover, row.rollover_cap, row.rollover_us)
            months = (calendar_number(row.calendar), row.zone)
            changes.add(PERIODS, (org_id, *period, *rolled, *ways, *months))
        case _:
            invariant(holds=False, claim="the store knows how to keep what a rule changed")


def is_metered(page: CachedBook, row: Row) -> bool:
    """Whether a beat has moved a window or a bucket and nothing else of it: add_meters keeps it."""
    if type(row) is Counter and row.ends_at:
        page.metered.add(owner_of(page, row.quota_id))
        return True
    if type(row) is TokenBucket and page.terms.get(row.bucket_id) == terms_of(row):
        page.metered.add(row.account_id)
        return True
    return False


def add_counter(changes: Changes, page: CachedBook, row: Counter) -> None:
    """What a quota on what runs at once counts."""
    kind = SLOTS if row.quota_id < page.first_new_id else NEW_SLOTS
    changes.add(kind, (page.book.org.org_id, row.quota_id, row.count, row.leaving))


def add_boost(changes: Changes, page: CachedBook, row: Boost) -> None:
    """A boost: its time, and the rest if it is new."""
    org_id = page.book.org.org_id
    if row.boost_id < page.first_new_id:
        changes.add(BOOSTS, (org_id, row.boost_id, row.starts_at, row.ends_at))
        return
    amounts = (row.amount, row.refill_per_hour, row.starts_at, row.ends_at)
    owner = (row.boost_id, row.account_id, row.target_id)
    changes.add(NEW_BOOSTS, (org_id, *owner, *amounts, row.note, row.created_at, row.set_by))


def add_quota(changes: Changes, page: CachedBook, row: Quota) -> None:
    """A quota: its limit and its end, and the rest if it is new."""
    note_limit(page, row.quota_id, row.ended_at)
    if row.dimension is PER_WINDOW:
        page.metered.add(row.account_id)
    may_change = (page.book.org.org_id, row.quota_id, row.limit, row.ended_at, row.set_by)
    if row.quota_id < page.first_new_id:
        changes.add(QUOTAS, may_change)
        return
    calendar = calendar_number(row.calendar)
    what = (row.account_id, row.dimension, row.gpu_type, calendar, row.zone, row.rolling_hours)
    since = (row.created_at, row.seeded, row.first_entry_id)
    changes.add(NEW_QUOTAS, (*may_change, *what, *since))


def add_bucket(changes: Changes, page: CachedBook, row: TokenBucket) -> None:
    """A bucket whose terms changed, and whose it is if it is new; its level is metered."""
    page.metered.add(row.account_id)
    page.terms[row.bucket_id] = terms_of(row)
    note_limit(page, row.bucket_id, row.ended_at)
    level = (row.level, row.level_at, row.fraction)
    org_id = page.book.org.org_id
    terms = (row.capacity, row.refill_per_hour, *level, row.ended_at, row.set_by)
    may_change = (org_id, row.bucket_id, *terms)
    if row.bucket_id < page.first_new_id:
        changes.add(BUCKETS, may_change)
    else:
        changes.add(NEW_BUCKETS, (*may_change, row.account_id, row.kind))


def owner_of(page: CachedBook, quota_id: int) -> int:
    """The account that a quota is of."""
    owner = page.owners.get(quota_id)
    if owner is None:
        [owner] = (
            account_id
            for account_id, quotas in page.book.limits.quotas.items()
            for quota in quotas
            if quota.quota_id == quota_id
        )
        page.owners[quota_id] = owner
    return owner


def add_meters(changes: Changes, page: CachedBook) -> None:
    """The meters that have moved: of each account its windows, and the tokens of its rate limit."""
    limits, org_id = page.book.limits, page.book.org.org_id
    kind = KEPT_METERS if page.came or page.ended else METERS
    for account_id in page.metered:
        windows: list[int] = []
        for quota in limits.quotas.get(account_id, ()):
            if quota.dimension is PER_WINDOW and not quota.ended_at:
                each = limits.counters[quota.quota_id]
                windows += (
                    each.quota_id,
                    each.used,
                    each.held,
                    each.base,
                    each.starts_at,
                    each.ends_at,
                )
        bucket = limits.buckets.get(account_id)
        tokens = (0, 0, 0)
        if bucket is not None and not bucket.ended_at:
            tokens = (bucket.level, bucket.level_at, bucket.fraction)
        changes.add(kind, (org_id, account_id, *tokens, numbers(windows)))
    page.metered = set()


def add_budget(changes: Changes, org_id: int, row: Budget) -> None:
    """A budget, new or changed."""
    changes.add(
        BUDGETS,
        (
            org_id,
            row.budget_id,
            row.account_id,
            row.name,
            row.allowance,
            row.next_at,
            calendar_number(row.calendar),
            row.zone,
            row.ends_at,
            row.rollover,
            row.rollover_cap,
            row.rollover_us,
            row.priority,
            literal(row.warn_percent),
            row.created_at,
        ),
    )


def add_gated_org(changes: Changes, page: CachedBook) -> bool:
    """Note on the org itself whether it has limits or budgets; False where nothing came or went."""
    if not (page.came or page.ended or page.has_new_budget):
        return False
    org = page.book.org
    has_limit = page.came or (page.gated and not page.ended)
    counters = (org.next_id, org.next_entry_id, page.now, page.next_version)
    ended = literal(page.ended)
    changes.add(GATED_ORGS, (org.org_id, *counters, has_limit, page.has_new_budget, ended))
    return True


def note_limit(page: CachedBook, number: int, ended_at: int) -> None:
    """Note whether a limit that changed is one that came or went."""
    if ended_at:
        page.ended = (*page.ended, number)
        page.outdated = True
    elif number >= page.first_new_id:
        page.came = page.outdated = True


def calendar_number(calendar: Calendar | None) -> int:
    """A calendar as it is stored."""
    return NO_CALENDAR if calendar is None else int(calendar)


def literal(numbers: list[int] | tuple[int, ...]) -> str:
    """Numbers as an array literal."""
    return f"{{{','.join(map(str, numbers))}}}"
