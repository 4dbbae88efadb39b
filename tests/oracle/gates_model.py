"""A naive second opinion on limits: it keeps every slice and counts from scratch each time.

Shares no code with the rules: calendars by hand, tokens as fractions, no running totals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SPRING, AUTUMN = 1_774_746_000 * SECOND, 1_792_890_000 * SECOND  # Berlin's changes of 2026


@dataclass
class ModelLease:
    """A lease as its answers told of it."""

    number: int
    path: str
    job: str
    kind: str
    gpus: int  # thousandths
    rate: int
    window_ms: int
    at: int
    ends: int
    held: int
    settled: int = 0
    live: bool = True
    lapsed: bool = False
    authorised: int = 0
    admitted: int = 0


@dataclass
class ModelQuota:
    """A limit with its boosts as (from, until, amount)."""

    path: str
    sort: str  # gpus, jobs, job, day, berlin, or a number of rolling hours
    kind: str
    limit: int
    boosts: list[tuple[int, int, int]] = field(default_factory=list)
    first_slice: int = 0

    def limit_at(self, at: int) -> int:
        """The limit with the boosts that are in force."""
        return self.limit + sum(more for start, end, more in self.boosts if start <= at < end)


@dataclass
class ModelBucket:
    """Tokens as a fraction at an instant."""

    path: str
    capacity: int
    refill: int
    level: Fraction
    at: int
    older: frozenset[int] = frozenset()  # leases that never drew what they held when it was set

    def change(self, lease: ModelLease, amount: int, now: int) -> None:
        """Draw, or put back what this lease has drawn."""
        level = self.look(now)
        if amount >= 0 or lease.number not in self.older:
            self.level = min(Fraction(self.capacity), level - amount)

    def look(self, now: int) -> Fraction:
        """Refill up to now."""
        self.level = min(
            Fraction(self.capacity), self.level + Fraction(self.refill * (now - self.at), HOUR)
        )
        self.at = now
        return self.level


@dataclass
class GatesModel:
    """Everything that ever ran, and every limit."""

    leases: dict[int, ModelLease] = field(default_factory=dict)
    quotas: dict[int, ModelQuota] = field(default_factory=dict)
    buckets: dict[str, ModelBucket] = field(default_factory=dict)
    lifted: dict[str, ModelBucket] = field(default_factory=dict)
    slices: list[tuple[str, str, int, int, int]] = field(default_factory=list)

    def lapse(self, now: int) -> None:
        """End every lease whose time is over."""
        for lease in self.leases.values():
            if lease.live and lease.ends <= now:
                lease.lapsed = True
                self.end(lease, now)

    def end(self, lease: ModelLease, now: int) -> None:
        """A lease is over: what it held goes back to the buckets on its way."""
        lease.live = False
        lease.authorised = lease.settled + lease.held
        for bucket in self.on_the_way(lease.path):
            bucket.change(lease, -lease.held, now)
        lease.held = 0

    def on_the_way(self, path: str) -> list[ModelBucket]:
        """Buckets from org to user."""
        return [bucket for bucket in self.buckets.values() if below(path, bucket.path)]

    def running(self, quota: ModelQuota) -> list[ModelLease]:
        """Live leases that a quota counts."""
        return [
            lease
            for lease in self.leases.values()
            if lease.live and below(lease.path, quota.path) and quota.kind in ("", lease.kind)
        ]

    def count(self, quota: ModelQuota, now: int) -> int:
        """What a quota has counted: GPUs or jobs that run, or credits used and held."""
        leases = self.running(quota)
        if quota.sort == "gpus":
            return sum(lease.gpus for lease in leases)
        if quota.sort == "jobs":
            return len({(lease.path, lease.job) for lease in leases})
        return self.used(quota, now) + sum(lease.held for lease in leases)

    def used(self, quota: ModelQuota, now: int) -> int:
        """What was spent in the window that is open, slice by slice."""
        start, end = window(quota.sort, now)
        return sum(
            part_before(due, since, until, end) - part_before(due, since, until, start)
            for path, kind, due, since, until in self.slices[quota.first_slice :]
            if below(path, quota.path) and quota.kind in ("", kind)
        )

    def admits(self, lease: ModelLease, now: int) -> str:
        """The word for what a request is told, if credits are no matter."""
        for quota in self.ordered(lease):
            asked = {"gpus": lease.gpus, "jobs": 1}.get(quota.sort, lease.held)
            if quota.sort == "jobs":
                jobs = {(other.path, other.job) for other in self.running(quota)}
                asked = int((lease.path, lease.job) not in jobs)
            if self.count(quota, now) + asked > quota.limit_at(now):
                return "quota_exceeded"
        if any(bucket.look(now) < lease.held for bucket in self.on_the_way(lease.path)):
            return "rate_limited"
        return ""

    def ordered(self, lease: ModelLease) -> list[ModelQuota]:
        """Quotas that a lease meets."""
        return [
            quota
            for quota in self.quotas.values()
            if below(lease.path, quota.path) and quota.kind in ("", lease.kind)
        ]

    def authorised(self, lease: ModelLease, before_ms: int, told_ms: int, now: int) -> int:
        """The use that a report is charged for: what passed, and what every window has room for."""
        end = now if lease.live else lease.ends
        used_ms = min(told_ms, (end - lease.admitted) // 1_000)
        while used_ms > before_ms and not self.may_charge(lease, used_ms, now):
            lower = max(used_ms - max((used_ms - before_ms) // 50, 1), before_ms)
            if self.may_charge(lease, lower, now):
                return self.last_that_may(lease, lower, used_ms, now)
            used_ms = lower
        return max(used_ms, before_ms)

    def last_that_may(self, lease: ModelLease, low: int, high: int, now: int) -> int:
        """The longest use between one that may be charged and one that may not."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.may_charge(lease, middle, now):
                low = middle
            else:
                high = middle
        return low

    def may_charge(self, lease: ModelLease, used_ms: int, now: int) -> bool:
        """Whether so much use costs no more than was authorised."""
        due = lease.rate * used_ms // HOUR_MS - lease.settled
        if not lease.live:
            return lease.settled + due <= lease.authorised
        if due <= lease.held:
            return True
        for quota in self.ordered(lease):
            if quota.sort in ("gpus", "jobs"):
                continue
            start, end = window(quota.sort, now)
            mine = part_before(due, lease.at, now, end) - part_before(due, lease.at, now, start)
            if self.count(quota, now) - lease.held + mine > quota.limit_at(now):
                return False
        return True

    def renews(self, lease: ModelLease, used_ms: int, now: int) -> tuple[str, int] | None:
        """(decision, hold) of a beat; None where a lowered limit makes some lease go."""
        due = lease.rate * used_ms // HOUR_MS - lease.settled
        wanted = lease.rate * (used_ms + lease.window_ms) // HOUR_MS - lease.settled - due
        kept = min(max(lease.held - due, 0), wanted)
        room = wanted
        for quota in self.ordered(lease):
            if quota.sort in ("gpus", "jobs"):
                if self.count(quota, now) > quota.limit_at(now):
                    return None
                continue
            start, end = window(quota.sort, now)
            mine = part_before(due, lease.at, now, end) - part_before(due, lease.at, now, start)
            taken = self.count(quota, now) - lease.held + mine
            room = min(room, quota.limit_at(now) - taken)
        hold = most = min(wanted, max(room, kept))
        for bucket in self.on_the_way(lease.path):
            level = bucket.look(now)
            if level < most - lease.held + due:
                hold = min(hold, max(lease.held - due + level.__floor__(), kept))
        if hold < most:
            return "throttle", hold
        return ("continue" if most == wanted else "drain"), hold


HOUR_MS = 3_600_000_000  # of thousandths of GPUs


def below(path: str, above: str) -> bool:
    """Whether a path lies in another's tree."""
    return f"{path}/".startswith(f"{above}/")


def part_before(due: int, since: int, until: int, edge: int) -> int:
    """How much of an even slice lies before an instant."""
    if edge >= until:
        return due
    if edge <= since:
        return 0
    return due * (edge - since) // (until - since)


def window(sort: str, now: int) -> tuple[int, int]:
    """[start, end) of what counts now; a rolling window counts from the cell it is leaving."""
    if sort == "day":
        return now // DAY * DAY, now // DAY * DAY + DAY
    if sort == "berlin":
        start = max(edge for edge in berlin_midnights(now) if edge <= now)
        return start, min(edge for edge in berlin_midnights(now) if edge > now)
    cell = int(sort) * MINUTE
    current = now // cell * cell
    return current - int(sort) * HOUR, current + cell


def berlin_midnights(now: int) -> list[int]:
    """Midnights around an instant of 2026, with the summer's hour by hand."""
    edges = []
    for day in range(now // DAY - 2, now // DAY + 4):
        winter = day * DAY - HOUR
        edges.append(winter - HOUR if SPRING <= winter - HOUR < AUTUMN else winter)
    return edges
