"""Fair shares the slow and obvious way, on exact fractions.

Shares no code with the package: trees are nested dicts, a leaf is what it demands. Everything is
computed by raising a water level step by step, and by looking at everybody at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Tenant:
    """A tenant with a weight; leaves have demands, one amount for each resource."""

    weight: int = 1
    demand: tuple[int, ...] = ()
    children: dict[str, Tenant] = field(default_factory=dict)

    def total(self) -> tuple[int, ...]:
        """Demand of the whole subtree."""
        if not self.children:
            return self.demand
        demands = [child.total() for child in self.children.values()]
        return tuple(map(sum, zip(*demands, strict=True)))


def max_min(capacity: Fraction, tenants: dict[str, Tenant]) -> dict[str, Fraction]:
    """Weighted max-min of one resource among siblings; weight 0 shares what is left."""
    got = dict.fromkeys(tenants, Fraction(0))
    left = capacity
    for weightless in (False, True):
        active = {
            name
            for name, tenant in tenants.items()
            if (tenant.weight == 0) == weightless and tenant.total()[0]
        }
        while active and left:
            weights = {name: tenants[name].weight or 1 for name in active}
            step = min(
                left / sum(weights.values()),
                *((tenants[name].total()[0] - got[name]) / weights[name] for name in active),
            )
            for name in active:
                got[name] += step * weights[name]
                left -= step * weights[name]
            active = {name for name in active if got[name] < tenants[name].total()[0]}
    return got


def hierarchical(
    capacity: Fraction, tenants: dict[str, Tenant], prefix: str = ""
) -> dict[str, Fraction]:
    """Weighted max-min level by level: the share of every tenant, by path."""
    shares: dict[str, Fraction] = {}
    for name, share in max_min(capacity, tenants).items():
        shares[prefix + name] = share
        shares |= hierarchical(share, tenants[name].children, f"{prefix}{name}/")
    return shares


def dominant_fairness(
    capacities: tuple[int, ...], tenants: dict[str, Tenant]
) -> dict[str, Fraction]:
    """Divisible weighted DRF among siblings: their dominant shares."""
    left = [Fraction(capacity) for capacity in capacities]
    shares = dict.fromkeys(tenants, Fraction(0))

    def per_share(name: str) -> list[Fraction]:
        """What a tenant takes of each resource for a dominant share of one."""
        demand = tenants[name].demand
        dominant = max(Fraction(d, c) for d, c in zip(demand, capacities, strict=True))
        return [Fraction(d) / dominant for d in demand]

    active = {name for name, tenant in tenants.items() if max(tenant.demand) and tenant.weight}
    while active:
        speeds = [
            sum((per_share(name)[axis] * tenants[name].weight for name in active), Fraction(0))
            for axis in range(len(capacities))
        ]
        steps = [space / speed for space, speed in zip(left, speeds, strict=True) if speed]
        for name in active:
            demand = tenants[name].demand
            full = max(Fraction(d, c) for d, c in zip(demand, capacities, strict=True))
            steps.append((full - shares[name]) / tenants[name].weight)
        step = min(steps)
        for name in active:
            shares[name] += step * tenants[name].weight
        left = [space - speed * step for space, speed in zip(left, speeds, strict=True)]
        active = {
            name
            for name in active
            if any(
                shares[name] * amount < wanted
                for amount, wanted in zip(per_share(name), tenants[name].demand, strict=True)
            )
        }
        active = {
            name
            for name in active
            if all(space or not d for space, d in zip(left, tenants[name].demand, strict=True))
        }
    return shares


def drf_tasks(
    capacities: tuple[int, ...], tasks: dict[str, tuple[int, ...]], counts: dict[str, int]
) -> dict[str, int]:
    """Algorithm 1 of Ghodsi et al. (NSDI 2011): tasks launched for each user.

    The user with the lowest dominant share goes next; it drops out when its task does not fit or
    it has no more.
    """
    consumed = [0] * len(capacities)
    launched = dict.fromkeys(tasks, 0)
    active = {user for user in tasks if counts[user]}
    while active:
        user = min(
            active,
            key=lambda name: (
                max(
                    Fraction(launched[name] * amount, capacity)
                    for amount, capacity in zip(tasks[name], capacities, strict=True)
                ),
                name,
            ),
        )
        after = [used + amount for used, amount in zip(consumed, tasks[user], strict=True)]
        if any(used > capacity for used, capacity in zip(after, capacities, strict=True)):
            active.discard(user)
            continue
        consumed = after
        launched[user] += 1
        if launched[user] == counts[user]:
            active.discard(user)
    return launched


@dataclass
class Job:
    """A job that waits: who, how much, and its place within its user's queue."""

    name: str
    path: tuple[str, str, str]
    size: int
    order: tuple[int, int, str]


def admitted(
    capacity: int, weights: dict[str, int], jobs: list[Job], shares: dict[str, Fraction]
) -> list[str]:
    """Which jobs start in an empty pool of one resource, by looking at everyone at every step.

    At each level the tenant goes next whose job stays within its share, then one whom the job
    brings nearer to it, then one still below it, then anyone; among these the smallest holding
    for its weight, then the name. A job that does not fit is passed over, but counts as held.
    """
    held: dict[str, int] = {}
    left = capacity
    started: list[str] = []
    waiting = list(jobs)
    while waiting:
        job = _first(waiting, 0, held, weights, shares)
        waiting.remove(job)
        if job.size <= left:
            left -= job.size
            started.append(job.name)
        for depth in range(3):
            place = "/".join(job.path[: depth + 1])
            held[place] = held.get(place, 0) + job.size
    return started


def _first(
    jobs: list[Job],
    depth: int,
    held: dict[str, int],
    weights: dict[str, int],
    shares: dict[str, Fraction],
) -> Job:
    """The job that would start next among these, which agree on their path above this depth."""
    if depth == 3:
        return min(jobs, key=lambda job: job.order)
    ranked: list[tuple[tuple[bool, int, Fraction, str], Job]] = []
    for name in {job.path[depth] for job in jobs}:
        inner = [job for job in jobs if job.path[depth] == name]
        job = _first(inner, depth + 1, held, weights, shares)
        place = "/".join(job.path[: depth + 1])
        mine = held.get(place, 0)
        weight = weights.get(place, 1)
        tiers = (
            mine + job.size <= shares[place],
            2 * mine + job.size <= 2 * shares[place],
            mine < shares[place],
            True,
        )
        tier = tiers.index(True)
        ranked.append(((weight == 0, tier, Fraction(mine, weight or 1), name), job))
    return min(ranked, key=lambda candidate: candidate[0])[1]
