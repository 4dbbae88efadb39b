"""The limits of one org in a book: quotas, what they count, token buckets and boosts.

Owns: finding them; the exact arithmetic of token buckets; what a limit is at an instant, with
boosts, which raise it for a while and lapse by themselves; and lanes: for the leases of one account
and GPU type, every limit on the way from org to user with boosts already added, good until the next
instant at which that may change.
Must not: decide anything, or change the limit that a boost raises. Lanes live as long as the book;
whatever changes a limit drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from gpucredits.core import bounds
from gpucredits.core.authority import Authority
from gpucredits.core.bounds import HOUR_US
from gpucredits.core.quota import (
    Counter,
    Dimension,
    JobLeases,
    Quota,
    Tally,
    reach,
    window_at,
)

NO_CAP = bounds.NEVER_US
PER_JOB = Dimension.CREDITS_PER_JOB
PER_WINDOW = Dimension.CREDITS_PER_WINDOW


class Tokens(IntEnum):
    """What a bucket's tokens stand for."""

    CREDITS = 0  # micro-credits that may be authorised, for each account
    REQUESTS = 1  # requests that may be made, for each access key


@dataclass(slots=True)
class TokenBucket:
    """How fast credits may be authorised, or requests be made.

    It holds at most ``capacity`` tokens and gains ``refill_per_hour`` of them each hour, evenly.
    ``level`` and ``fraction``, in 3,600,000,000ths of a token, are what it held at ``level_at``.
    Drawing tokens changes ``level`` alone, so a draw or a refund never moves time and never loses
    or mints a fraction of a token. A bucket damps bursts; it is never an allowance.

    ``level`` may be below zero where charges had to be taken that no token stood for, and drifts
    down between fillings while ``level_at`` stands still: only ``tokens`` says what is there.
    ``set_by`` is the scope of the key that set it.
    """

    bucket_id: int
    account_id: int
    capacity: int
    refill_per_hour: int
    level: int
    level_at: int
    fraction: int = 0
    kind: Tokens = Tokens.CREDITS
    ended_at: int = 0
    set_by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True)
class BucketTerms:
    """A capacity and a refill that hold from an instant on: a bucket's own, or boosted."""

    since: int
    capacity: int
    refill_per_hour: int


def tokens(bucket: TokenBucket, now: int) -> int:
    """Whole tokens there are now, by the bucket's own terms."""
    gained = bucket.fraction + bucket.refill_per_hour * (now - bucket.level_at)
    return min(bucket.capacity, bucket.level + gained // HOUR_US)


def clears_at(bucket: TokenBucket, amount: int, now: int) -> int | None:
    """The first instant at which ``amount`` could be drawn; None when it never could.

    What would take longer than instants can be written is never.
    """
    if amount > bucket.capacity:
        return None
    missing = (amount - bucket.level) * HOUR_US - bucket.fraction
    if missing <= 0:
        return now
    if not bucket.refill_per_hour:
        return None if tokens(bucket, now) < amount else now
    at = max(now, bucket.level_at - (-missing // bucket.refill_per_hour))
    return at if at <= bounds.INSTANT_US_MAX else None


def resize(bucket: TokenBucket, *, capacity: int, refill_per_hour: int, now: int) -> None:
    """Change the terms; tokens already there stay, as far as they fit."""
    advance(bucket, (), now)
    bucket.capacity = capacity
    bucket.refill_per_hour = refill_per_hour
    _spill(bucket, capacity)


def advance(bucket: TokenBucket, changes: tuple[BucketTerms, ...], now: int) -> BucketTerms:
    """Bring ``level`` to ``now`` through every change of terms on the way; the terms in force.

    ``changes`` are in order of time; before the first one the bucket's own terms hold.
    """
    terms = BucketTerms(0, bucket.capacity, bucket.refill_per_hour)
    for change in changes:
        if change.since > now:
            break
        if change.since > bucket.level_at:
            _refill(bucket, terms, change.since)
        terms = change
        if change.since >= bucket.level_at:
            _spill(bucket, change.capacity)
    if now > bucket.level_at:
        _refill(bucket, terms, now)
    _spill(bucket, terms.capacity)
    return terms


def _refill(bucket: TokenBucket, terms: BucketTerms, until: int) -> None:
    gained = bucket.fraction + terms.refill_per_hour * (until - bucket.level_at)
    whole, bucket.fraction = divmod(gained, HOUR_US)
    bucket.level += whole
    bucket.level_at = until
    _spill(bucket, terms.capacity)


def _spill(bucket: TokenBucket, capacity: int) -> None:
    if bucket.level >= capacity:
        bucket.level = capacity
        bucket.fraction = 0


@dataclass(slots=True)
class Boost:
    """``amount`` more on a quota's limit or a bucket's capacity on [starts_at, ends_at).

    ``target_id`` is the quota's or the bucket's id; ``refill_per_hour`` is for buckets only.
    """

    boost_id: int
    account_id: int
    target_id: int
    amount: int
    starts_at: int
    ends_at: int
    refill_per_hour: int = 0
    note: str = ""
    created_at: int = 0
    set_by: Authority = Authority.SYSTEM


def boosted(limit: int, boosts: Iterable[Boost], at: int) -> int:
    """The limit with every boost that is in force at an instant."""
    return limit + sum(boost.amount for boost in boosts if boost.starts_at <= at < boost.ends_at)


def next_change(boosts: Iterable[Boost], now: int) -> int:
    """The next instant at which a boost begins or ends."""
    edges = (edge for boost in boosts for edge in (boost.starts_at, boost.ends_at) if edge > now)
    return min(edges, default=bounds.NEVER_US)


def bucket_terms(bucket: TokenBucket, boosts: Iterable[Boost]) -> tuple[BucketTerms, ...]:
    """A bucket's terms from each instant at which one of its boosts begins or ends."""
    known = tuple(boosts)
    edges = sorted({edge for boost in known for edge in (boost.starts_at, boost.ends_at)})
    return tuple(
        BucketTerms(
            edge,
            boosted(bucket.capacity, known, edge),
            bucket.refill_per_hour
            + sum(b.refill_per_hour for b in known if b.starts_at <= edge < b.ends_at),
        )
        for edge in edges
    )


LimitRow = Quota | Counter | Tally | JobLeases | TokenBucket | Boost


@dataclass(slots=True)
class AccountMeter:
    """What beats move of one account's limits: what its windows count, and its rate limit."""

    account_id: int
    windows: list[Counter]
    bucket: TokenBucket | None


@dataclass(slots=True)
class LimitChain:
    """The limits that leases of one account and GPU type meet, org first.

    Beats whose slice lies within [since, until) may use the numbers here as they are. ``cap`` is
    the least cap on one job, ``caps`` are all of them and ``caps_sum`` tells when one has changed.
    ``buckets`` are (bucket, capacity, refill), boosts added. ``meters`` are those of the accounts
    whose windows or rate limits are met, and ``noted_in`` is the list of moved lanes that this one
    is in already. ``counters`` and ``rooms`` are the counters and limits of ``windows`` again, side
    by side: beats look at nothing else of them.
    """

    since: int
    until: int
    cap: int
    windows: list[tuple[Counter, int, Quota]]
    buckets: list[tuple[TokenBucket, int, int]]
    counts: list[tuple[Counter, int, Quota]]
    noted_in: Any = None
    meters: list[AccountMeter] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    rooms: list[int] = field(default_factory=list)
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

    def boosts_of(self, target: Quota | TokenBucket) -> Sequence[Boost]:
        """The boosts that have force: a limit that was taken over from above loses those below."""
        number = target.quota_id if isinstance(target, Quota) else target.bucket_id
        known = self.boosts.get(number, ())
        if all(boost.set_by <= target.set_by for boost in known):
            return known
        return [boost for boost in known if boost.set_by <= target.set_by]

    def used_at(self, quota: Quota, counter: Counter, at: int) -> int:
        """What a window has counted as spent at an instant, if nothing more is spent until then."""
        if at < counter.ends_at:
            return counter.used
        if quota.calendar is not None:
            return 0
        oldest = window_at(quota, at)[0] - reach(quota)
        past = self.tallies.get(quota.quota_id, {}).values()
        used = sum(tally.used for tally in past if oldest <= tally.starts_at < counter.starts_at)
        return used + (counter.used - counter.base if counter.starts_at >= oldest else 0)

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
            windows, buckets = len(lane.windows), len(lane.buckets)
            for quota in self.quotas.get(account_id, ()):
                if not quota.ended_at and quota.gpu_type in ("", gpu_type):
                    limit = quota.limit
                    if boosts and quota.quota_id in boosts:
                        limit = self._boosted(quota, lane, now)
                    self._add_quota(lane, quota, limit)
            bucket = self.buckets.get(account_id)
            if bucket is not None and not bucket.ended_at:
                self._add_bucket(lane, bucket, now)
            if len(lane.windows) > windows or len(lane.buckets) > buckets:
                lane.meters.append(self.meter(account_id))
        lane.counters = [counter for counter, _, _ in lane.windows]
        lane.rooms = [limit for _, limit, _ in lane.windows]
        return lane

    def meter(self, account_id: int) -> AccountMeter:
        """Every window that an account's quotas count, of any GPU type, and its rate limit."""
        windows = [
            self.counters[quota.quota_id]
            for quota in self.quotas.get(account_id, ())
            if quota.dimension is PER_WINDOW and not quota.ended_at
        ]
        bucket = self.buckets.get(account_id)
        return AccountMeter(
            account_id, windows, None if bucket is None or bucket.ended_at else bucket
        )

    def _boosted(self, quota: Quota, lane: LimitChain, now: int) -> int:
        limit = quota.limit
        for boost in self.boosts_of(quota):
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
        boosts = self.boosts_of(bucket) if bucket.bucket_id in self.boosts else ()
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
