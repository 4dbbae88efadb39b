"""How limits stand at an instant: what they allow, what is taken of it, and when that changes.

Owns: the numbers that people are shown of quotas, rate limits and budgets, computed from the rows
that admission is decided by.
Must not: change rows; whoever reads has brought the book forward and throws it away.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.limits import Boost, TokenBucket, advance, boosted, bucket_terms
from gpucredits.core.quota import Dimension, Quota, window_at
from gpucredits.core.rules.limits.clearing import drawn_at
from gpucredits.core.rules.limits.gates import quota_name, quota_order


@dataclass(frozen=True, slots=True)
class QuotaStanding:
    """A quota: its limit with boosts, what is used and held of it, and when its window ends.

    A quota on credits per job counts nothing: its ``used`` and ``held`` are None.
    """

    quota: Quota
    cap: int
    used: int | None
    held: int | None
    resets_at: int | None
    boosts: tuple[Boost, ...]

    @property
    def name(self) -> str:
        """How people are told which quota it is."""
        return quota_name(self.quota)

    @property
    def left(self) -> int | None:
        """What may still be taken."""
        if self.used is None or self.held is None:
            return None
        return max(self.cap - self.used - self.held, 0)


@dataclass(frozen=True, slots=True)
class RateLimitStanding:
    """A rate limit: its terms with boosts, what it holds, and when it would be full."""

    bucket: TokenBucket
    cap: int
    refill: int
    level: int
    full_at: int | None
    boosts: tuple[Boost, ...]


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """A budget, the period that is open, and what is left of its allowance."""

    budget: Budget
    period: BudgetPeriod | None
    left: int


def quota_standings(book: Book, account: Account, now: int) -> list[QuotaStanding]:
    """The quotas of an account in the order in which they are checked."""
    quotas = book.limits.quotas.get(account.account_id, ())
    return [
        quota_standing(book, quota, now)
        for quota in sorted(quotas, key=quota_order)
        if not quota.ended_at
    ]


def quota_standing(book: Book, quota: Quota, now: int) -> QuotaStanding:
    """One quota as it stands."""
    boosts = coming_boosts(book, quota, now)
    cap = boosted(quota.limit, boosts, now)
    if quota.dimension is Dimension.CREDITS_PER_JOB:
        return QuotaStanding(quota, cap, None, None, None, boosts)
    counter = book.limits.counters[quota.quota_id]
    if quota.dimension is not Dimension.CREDITS_PER_WINDOW:
        return QuotaStanding(quota, cap, counter.count, 0, None, boosts)
    used = book.limits.used_at(quota, counter, now)
    resets_at = None if quota.calendar is None else window_at(quota, now)[1]
    return QuotaStanding(quota, cap, used, counter.held, resets_at, boosts)


def rate_limit_standing(book: Book, account: Account, now: int) -> RateLimitStanding | None:
    """The rate limit of an account as it stands, if it has one."""
    bucket = book.limits.buckets.get(account.account_id)
    if bucket is None or bucket.ended_at:
        return None
    seen = copy(bucket)
    every = book.limits.boosts_of(bucket)
    terms = advance(seen, bucket_terms(bucket, every), now)
    is_full = seen.level >= terms.capacity
    return RateLimitStanding(
        bucket,
        terms.capacity,
        terms.refill_per_hour,
        seen.level,
        None if is_full else drawn_at(bucket, every, None, now),
        coming_boosts(book, bucket, now),
    )


def budget_standings(book: Book, account: Account, now: int) -> list[BudgetStanding]:
    """The budgets of an account by name, with the periods that are open."""
    budgets = book.budgets.get(account.account_id, ())
    return [budget_standing(book, budget, now) for budget in sorted(budgets, key=budget_order)]


def budget_standing(book: Book, budget: Budget, now: int) -> BudgetStanding:
    """One budget as it stands."""
    for period in book.periods.get(budget.budget_id, ()):
        if period.starts_at <= now < period.ends_at:
            grant = book.lots.get(period.grant_id)
            return BudgetStanding(budget, period, grant.remaining if grant else 0)
    return BudgetStanding(budget, None, 0)


def budget_order(budget: Budget) -> tuple[bool, str]:
    """Open budgets first, by name."""
    return not budget.is_open, budget.name


def coming_boosts(book: Book, target: Quota | TokenBucket, now: int) -> tuple[Boost, ...]:
    """The boosts of a limit that are in force or will be."""
    boosts = book.limits.boosts_of(target)
    return tuple(sorted((b for b in boosts if b.ends_at > now), key=lambda b: b.boost_id))
