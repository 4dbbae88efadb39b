"""Rules for what operators set: quotas, rate limits and budgets (boosts have their own).

Owns: making and changing them. A new quota counts at once what already runs.
Must not: end or refuse anything that runs; the next renewal sees the new limit.
"""

from __future__ import annotations

from copy import copy

from gpucredits.core import bounds
from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.boost import bucket_terms
from gpucredits.core.budget import Budget, Rollover
from gpucredits.core.command import (
    EndBudget,
    EndQuota,
    EndRateLimit,
    SetBudget,
    SetQuota,
    SetRateLimit,
)
from gpucredits.core.outcome import BudgetSaved, QuotaSaved, RateLimitSaved
from gpucredits.core.period import check_zone
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally, window_at
from gpucredits.core.reasons import Reason, Refused, invariant
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rules.accounts import find
from gpucredits.core.rules.budgets import has_open_budget, issue_period
from gpucredits.core.rules.job_caps import begin_anew
from gpucredits.core.rules.roll import roll, roll_due
from gpucredits.core.token_bucket import TokenBucket, advance

WINDOW = Dimension.CREDITS_PER_WINDOW


def set_quota(book: Book, command: SetQuota, now: int) -> QuotaSaved | Refused:
    """Set a limit; a quota that is new counts what runs and holds now."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    if wrong := check_quota(command):
        return wrong
    quota = same_quota(book, account, command)
    if quota is not None:
        book.touch(quota)
        quota.limit = command.limit
        book.limits.lanes.clear()
        return QuotaSaved(quota, book.limits.counters.get(quota.quota_id), account.path)
    if full := too_many("quotas", len(open_quotas(book, account)), bounds.QUOTAS_MAX, account):
        return full
    invariant(book.whole, "a new quota sees every live lease of its org")
    roll_due(book, now)
    quota = Quota(
        quota_id=book.next_id(),
        account_id=account.account_id,
        dimension=command.dimension,
        limit=command.limit,
        gpu_type=command.gpu_type,
        calendar=command.calendar,
        zone=command.zone,
        rolling_hours=command.rolling_hours,
        created_at=now,
        seeded=command.used + sum(used for _, _, used in command.past),
        first_entry_id=book.org.next_entry_id,
    )
    book.add(quota)
    if quota.dimension is Dimension.CREDITS_PER_JOB:
        begin_anew(book, account, quota, live_below(book, account, quota.gpu_type))
        return QuotaSaved(quota, None, account.path)
    counter = count_anew(book, account, quota)
    if quota.dimension is WINDOW:
        counter.starts_at, counter.ends_at = window_at(quota, now)
        counter.base = sum(used for _, _, used in command.past)
        counter.used = counter.base + command.used
        for starts_at, ends_at, used in command.past:
            book.add(Tally(quota.quota_id, starts_at, ends_at, used))
    book.add(counter)
    return QuotaSaved(quota, counter, account.path)


def check_quota(command: SetQuota) -> Refused | None:
    """Refuse a quota that makes no sense."""
    per_window = command.dimension is WINDOW
    windows = (command.calendar is not None) + (command.rolling_hours > 0)
    if windows != per_window or command.rolling_hours > bounds.ROLLING_HOURS_MAX:
        return Refused(
            Reason.LIMIT_INVALID,
            "A quota on credits per window has either a calendar or 1 to "
            f"{bounds.ROLLING_HOURS_MAX} rolling hours; other quotas have neither.",
        )
    return zone_unknown(command.zone)


def too_many(what: str, there: int, most: int, account: Account) -> Refused | None:
    """Refuse to make one more of something than an account may have."""
    if there < most:
        return None
    return Refused(
        Reason.LIMIT_INVALID,
        f"{account.path} has {there} {what} already, and {most} is the most: end one first.",
        {"account": account.path, "limit": most},
    )


def open_quotas(book: Book, account: Account) -> list[Quota]:
    """The quotas of an account that have not ended."""
    quotas = book.limits.quotas.get(account.account_id, ())
    return [quota for quota in quotas if not quota.ended_at]


def zone_unknown(zone: str) -> Refused | None:
    """Refuse a zone that is not one."""
    try:
        check_zone(zone)
    except ValueError as error:
        return Refused(Reason.ZONE_UNKNOWN, f"zone {error}.", {"zone": zone})
    return None


def same_quota(book: Book, account: Account, command: SetQuota) -> Quota | None:
    """The quota that a command is about, if the account has it."""
    for quota in open_quotas(book, account):
        if (
            quota.dimension is command.dimension
            and quota.gpu_type == command.gpu_type
            and quota.calendar == command.calendar
            and quota.zone == command.zone
            and quota.rolling_hours == command.rolling_hours
        ):
            return quota
    return None


def count_anew(book: Book, account: Account, quota: Quota) -> Counter:
    """What a quota counts, from the live leases below its account."""
    counter = Counter(quota.quota_id)
    jobs: dict[tuple[int, str, str], JobLeases] = {}
    for lease in live_below(book, account, quota.gpu_type):
        counter.held += lease.ahead if quota.dimension is WINDOW else 0
        if quota.dimension is Dimension.CONCURRENT_GPUS:
            counter.count += lease.gpu_count
            counter.leaving += lease.gpu_count if lease.leaving else 0
        elif quota.dimension is Dimension.CONCURRENT_JOBS:
            key = (lease.account_id, lease.job_id, quota.gpu_type)
            row = jobs.setdefault(key, JobLeases(*key))
            row.live += 1
            row.leaving += lease.leaving
    if quota.dimension is Dimension.CONCURRENT_JOBS:
        counter.count = len(jobs)
        counter.leaving = sum(1 for row in jobs.values() if row.leaving)
        note_jobs(book, account, quota.gpu_type, jobs)
    return counter


def note_jobs(
    book: Book, account: Account, gpu_type: str, jobs: dict[tuple[int, str, str], JobLeases]
) -> None:
    """Put the counts of jobs right that no quota had asked for until now."""
    below = {row.account_id for row in book.accounts.values() if is_below(row.path, account.path)}
    for key, row in book.limits.jobs.items():
        if key[0] in below and key[2] == gpu_type and key not in jobs and row.live:
            book.touch(row)
            row.live = row.leaving = 0
    for key, counted in jobs.items():
        known = book.limits.jobs.get(key)
        if known is None:
            book.add(counted)
        else:
            book.touch(known)
            known.live, known.leaving = counted.live, counted.leaving


def live_below(book: Book, account: Account, gpu_type: str) -> list[Reservation]:
    """Live leases of an account and those below it, of one GPU type or of any."""
    return [
        lease
        for lease in book.reservations.values()
        if lease.state is ReservationState.ACTIVE
        and gpu_type in ("", lease.gpu_type)
        and is_below(lease.account, account.path)
    ]


def is_below(path: str, above: str) -> bool:
    """Whether a path is another or lies below it."""
    return path == above or path.startswith(f"{above}/")


def end_quota(book: Book, command: EndQuota, now: int) -> QuotaSaved | Refused:
    """Take a quota away; what it counted stays on record."""
    quota = find_quota(book, command.quota_id)
    if quota is None:
        return Refused(Reason.LIMIT_UNKNOWN, "There is no such quota.")
    book.touch(quota)
    quota.ended_at = now
    book.limits.lanes.clear()
    path = book.accounts[quota.account_id].path
    return QuotaSaved(quota, book.limits.counters.get(quota.quota_id), path)


def find_quota(book: Book, quota_id: int) -> Quota | None:
    """A quota that has not ended, by its id."""
    every = (quota for quotas in book.limits.quotas.values() for quota in quotas)
    return next((q for q in every if q.quota_id == quota_id and not q.ended_at), None)


def set_rate_limit(book: Book, command: SetRateLimit, now: int) -> RateLimitSaved | Refused:
    """Set a bucket's terms; an account's first is full, and one that exists keeps what fits."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    invariant(book.whole, "a rate limit sees every lease of its org that has lapsed")
    roll_due(book, now)
    bucket = book.limits.buckets.get(account.account_id)
    if bucket is None or bucket.ended_at:
        bucket = TokenBucket(
            bucket_id=book.next_id(),
            account_id=account.account_id,
            capacity=command.capacity,
            refill_per_hour=command.refill_per_hour,
            level=first_level(book, account, command.capacity, now),
            level_at=now,
        )
        book.add(bucket)
        return RateLimitSaved(bucket, account.path)
    book.touch(bucket)
    boosts = book.limits.boosts.get(bucket.bucket_id, ())
    advance(bucket, bucket_terms(bucket, boosts), now)
    bucket.capacity = command.capacity
    bucket.refill_per_hour = command.refill_per_hour
    advance(bucket, bucket_terms(bucket, boosts), now)  # what no longer fits is gone
    book.limits.lanes.clear()
    return RateLimitSaved(bucket, account.path)


def first_level(book: Book, account: Account, capacity: int, now: int) -> int:
    """What a new bucket begins with: no more than the one before it would hold by now."""
    before = book.limits.last_ended(account.account_id)
    if before is None:
        return capacity
    before = copy(before)
    boosts = book.limits.boosts.get(before.bucket_id, ())
    advance(before, bucket_terms(before, boosts), now)
    return min(before.level, capacity)


def end_rate_limit(book: Book, command: EndRateLimit, now: int) -> RateLimitSaved | Refused:
    """Take an account's rate limit away."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    bucket = book.limits.buckets.get(account.account_id)
    if bucket is None or bucket.ended_at:
        return Refused(
            Reason.LIMIT_UNKNOWN, f"{account.path} has no rate limit.", {"account": account.path}
        )
    book.touch(bucket)
    bucket.ended_at = now
    book.limits.lanes.clear()
    return RateLimitSaved(bucket, account.path)


def set_budget(book: Book, command: SetBudget, now: int) -> BudgetSaved | Refused:
    """Make a budget, whose first period is issued at its start, or change its later periods."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    begins = max(now, command.starts_at or now)
    if wrong := check_budget(command, begins):
        return wrong
    roll(book, account, now)
    budgets = book.budgets.get(account.account_id, ())
    budget = next((known for known in budgets if known.name == command.name), None)
    if budget is None:
        there = sum(1 for known in budgets if known.is_open)
        if full := too_many("budgets", there, bounds.BUDGETS_MAX, account):
            return full
        budget = Budget(book.next_id(), account.account_id, command.name, 0, begins, created_at=now)
        book.add(budget)
    book.touch(budget)
    book.touch(account)
    has_begun = bool(book.periods.get(budget.budget_id))
    if not budget.is_open or (command.starts_at and not has_begun):
        budget.next_at = max(budget.next_at, begins) if has_begun else begins
    budget.allowance = command.allowance
    budget.calendar, budget.zone = command.calendar, command.zone
    budget.ends_at = command.ends_at
    budget.rollover, budget.rollover_cap = command.rollover, command.rollover_cap
    budget.rollover_us = command.rollover_us
    budget.priority = command.priority
    budget.warn_percent = command.warn_percent
    if budget.is_open and budget.next_at <= now:
        grant = issue_period(book, account, budget)
        account.due_at = min(account.due_at, grant.expires_at)
    account.has_budget = has_open_budget(book, account)
    if budget.is_open:
        account.due_at = min(account.due_at, budget.next_at)
    account.version += 1
    return BudgetSaved(budget, account.path)


def check_budget(command: SetBudget, begins: int) -> Refused | None:
    """Refuse a budget that makes no sense."""
    explicit = command.calendar is None
    if explicit and command.ends_at >= bounds.NEVER_US:
        return Refused(Reason.LIMIT_INVALID, "A budget without a calendar needs an ends_at.")
    if explicit and command.rollover is not Rollover.NONE and not command.rollover_us:
        return Refused(
            Reason.LIMIT_INVALID,
            "What rolls over from a budget without a calendar needs a time to live.",
        )
    if command.ends_at <= begins:
        return Refused(
            Reason.WINDOW_ENDED,
            "The budget would end before it begins: ends_at must be later than now and starts_at.",
        )
    return zone_unknown(command.zone)


def end_budget(book: Book, command: EndBudget, now: int) -> BudgetSaved | Refused:
    """Let no further period begin; the one that is open runs to its end."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    roll(book, account, now)
    budgets = book.budgets.get(account.account_id, ())
    budget = next((known for known in budgets if known.name == command.name), None)
    if budget is None or not budget.is_open:
        return Refused(
            Reason.LIMIT_UNKNOWN,
            f"{account.path} has no open budget {command.name}.",
            {"account": account.path},
        )
    book.touch(budget)
    book.touch(account)
    budget.ends_at = budget.next_at
    account.has_budget = has_open_budget(book, account)
    account.version += 1
    return BudgetSaved(budget, account.path)
