"""The limits of one org in a book: quotas, what they count, token buckets and boosts.

Owns: finding them, and lanes: for the leases of one account and GPU type, every limit on the way
from org to user with boosts already added, good until the next instant at which that may change.
Must not: decide anything. Lanes live as long as the book; whatever changes a limit drops them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpucredits.core import bounds
from gpucredits.core.boost import Boost, next_change
from gpucredits.core.bounds import HOUR_US
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally
from gpucredits.core.token_bucket import TokenBucket, Tokens

LimitRow = Quota | Counter | Tally | JobLeases | TokenBucket | Boost
NO_CAP = bounds.NEVER_US
PER_JOB = Dimension.CREDITS_PER_JOB
PER_WINDOW = Dimension.CREDITS_PER_WINDOW


@dataclass(slots=True)
class LimitChain:
    """The limits that leases of one account and GPU type meet, org first.

    Beats whose slice lies within [since, until) may use the numbers here as they are. ``cap`` is
    the least cap on one job, ``caps`` are all of them and ``caps_sum`` tells when one has changed.
    ``buckets`` are (bucket, capacity, refill), boosts added. ``noted_in``
    is the record of changed rows that its rows are in already.
    """

    since: int
    until: int
    cap: int
    windows: list[tuple[Counter, int, Quota]]
    buckets: list[tuple[TokenBucket, int, int]]
    counts: list[tuple[Counter, int, Quota]]
    noted_in: Any = None
    caps: list[tuple[int, Quota]] = field(default_factory=list)
    caps_sum: int = 0


@dataclass(slots=True)
class Limits:
    """Every limit of the org that is in the book, by what it is looked up by.

    ``ended`` holds buckets of an account that ended before the one in ``buckets`` was set, the
    last one last, as far as they are in the book: a new limit takes up what the last one held.
    """

    quotas: dict[int, list[Quota]] = field(default_factory=dict)
    counters: dict[int, Counter] = field(default_factory=dict)
    tallies: dict[int, dict[int, Tally]] = field(default_factory=dict)
    jobs: dict[tuple[int, str, str], JobLeases] = field(default_factory=dict)
    buckets: dict[int, TokenBucket] = field(default_factory=dict)
    ended: dict[int, list[TokenBucket]] = field(default_factory=dict)
    boosts: dict[int, list[Boost]] = field(default_factory=dict)
    lanes: dict[tuple[int, str], LimitChain] = field(default_factory=dict)

    def index(self, row: LimitRow) -> None:
        """Take in a row."""
        self.lanes.clear()
        match row:
            case Quota():
                self.quotas.setdefault(row.account_id, []).append(row)
            case Counter():
                self.counters[row.quota_id] = row
            case Tally():
                self.tallies.setdefault(row.quota_id, {})[row.starts_at] = row
            case JobLeases():
                self.jobs[row.account_id, row.job_id, row.gpu_type] = row
            case TokenBucket():
                if row.kind is Tokens.CREDITS:
                    self._index_bucket(row)
            case Boost():
                self.boosts.setdefault(row.target_id, []).append(row)

    def forget(self, row: LimitRow) -> None:
        """Let go of a row that was taken in."""
        match row:
            case Quota():
                self.quotas[row.account_id].remove(row)
            case Counter():
                del self.counters[row.quota_id]
            case Tally():
                del self.tallies[row.quota_id][row.starts_at]
            case JobLeases():
                del self.jobs[row.account_id, row.job_id, row.gpu_type]
            case TokenBucket():
                if self.buckets.get(row.account_id) is row:
                    del self.buckets[row.account_id]
                    if self.ended.get(row.account_id):
                        self.buckets[row.account_id] = self.ended[row.account_id].pop()
            case Boost():
                self.boosts[row.target_id].remove(row)

    def last_ended(self, account_id: int) -> TokenBucket | None:
        """The last bucket of an account that has none now; None if it never had one."""
        known = self.buckets.get(account_id)
        if known is not None:
            return known
        ended = self.ended.get(account_id)
        return ended[-1] if ended else None

    def _index_bucket(self, row: TokenBucket) -> None:
        if row.ended_at:
            self.ended.setdefault(row.account_id, []).append(row)
            return
        before = self.buckets.get(row.account_id)
        if before is not None and before.ended_at:
            self.ended.setdefault(row.account_id, []).append(before)
        self.buckets[row.account_id] = row

    def lane(self, account_ids: tuple[int, ...], gpu_type: str, now: int) -> LimitChain:
        """The lane of an account, given with those above it, org first."""
        key = (account_ids[-1], gpu_type)
        lane = self.lanes.get(key)
        if lane is None or now >= lane.until:
            lane = self.lanes[key] = self._make_lane(account_ids, gpu_type, now)
        return lane

    def _make_lane(self, account_ids: tuple[int, ...], gpu_type: str, now: int) -> LimitChain:
        lane = LimitChain(0, bounds.NEVER_US, NO_CAP, [], [], [])
        boosts = self.boosts
        for account_id in account_ids:
            for quota in self.quotas.get(account_id, ()):
                if not quota.ended_at and quota.gpu_type in ("", gpu_type):
                    limit = quota.limit
                    if boosts and quota.quota_id in boosts:
                        limit = self._boosted(quota, lane, now)
                    self._add_quota(lane, quota, limit)
            bucket = self.buckets.get(account_id)
            if bucket is not None and not bucket.ended_at:
                self._add_bucket(lane, bucket, now)
        return lane

    def _boosted(self, quota: Quota, lane: LimitChain, now: int) -> int:
        limit = quota.limit
        for boost in self.boosts[quota.quota_id]:
            if boost.starts_at <= now < boost.ends_at:
                limit += boost.amount
        lane.until = min(lane.until, next_change(self.boosts[quota.quota_id], now))
        return limit

    def _add_quota(self, lane: LimitChain, quota: Quota, limit: int) -> None:
        dimension = quota.dimension
        if dimension is PER_JOB:
            lane.cap = min(lane.cap, limit)
            lane.caps.append((limit, quota))
            lane.caps_sum += limit + 1
            return
        counter = self.counters[quota.quota_id]
        if dimension is PER_WINDOW:
            lane.windows.append((counter, limit, quota))
            lane.since = max(lane.since, counter.starts_at)
            lane.until = min(lane.until, counter.ends_at)
            return
        lane.counts.append((counter, limit, quota))
        if counter.leaving or counter.count > limit:
            lane.until = 0  # some lease has to go, so every beat is looked at closely

    def _add_bucket(self, lane: LimitChain, bucket: TokenBucket, now: int) -> None:
        capacity, refill = bucket.capacity, bucket.refill_per_hour
        boosts = self.boosts.get(bucket.bucket_id)
        if boosts:
            for boost in boosts:
                if boost.starts_at <= now < boost.ends_at:
                    capacity += boost.amount
                    refill += boost.refill_per_hour
            lane.until = min(lane.until, next_change(boosts, now))
            if next_change(boosts, bucket.level_at) <= now:
                lane.until = 0  # its terms have changed since it was last brought up to date
        if now - bucket.level_at > HOUR_US:
            lane.until = 0  # bring it up to date, so that its level stays within bounds
        lane.buckets.append((bucket, capacity, refill))
