"""Fair share against the oracle, over thousands of random pools."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.filling import ratio_scale
from gpucredits.core.fairshare.snapshot import Policy, PoolSnapshot, Tenant, WaitingRequest
from gpucredits.core.fairshare.tree import divisible
from oracle import fairshare_oracle as oracle

NO_PREEMPTION = Policy(preemption=False)
POOLS = 1_200


class RandomPool:
    """An empty pool of GPUs with tenants on three levels, and their jobs."""

    def __init__(self, seed: int, sizes: tuple[int, ...]) -> None:
        rng = random.Random(seed)
        self.capacity = rng.randint(1, 40)
        self.orgs: dict[str, oracle.Tenant] = {}
        self.weights: dict[str, int] = {}
        self.jobs: list[oracle.Job] = []
        heaviest = rng.choice((1, 3, 12))
        for org in range(rng.randint(1, 5)):
            projects = {}
            for project in range(rng.randint(1, 3)):
                users = {}
                for user in range(rng.randint(1, 3)):
                    path = (f"o{org}", f"p{project}", f"u{user}")
                    mine = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 3, 9)))]
                    for size in mine:
                        name = f"j{len(self.jobs):03}"
                        order = (-rng.randint(0, 1), rng.randint(0, 9), name)
                        self.jobs.append(oracle.Job(name, path, size, order))
                    users[path[2]] = self._tenant(rng, "/".join(path), heaviest, (sum(mine),))
                place = f"o{org}/p{project}"
                projects[f"p{project}"] = self._tenant(rng, place, heaviest, ())
                projects[f"p{project}"].children = users
            self.orgs[f"o{org}"] = self._tenant(rng, f"o{org}", heaviest, ())
            self.orgs[f"o{org}"].children = projects
        self.shares = oracle.hierarchical(Fraction(self.capacity), self.orgs)

    def _tenant(
        self, rng: random.Random, path: str, heaviest: int, demand: tuple[int, ...]
    ) -> oracle.Tenant:
        self.weights[path] = rng.randint(0 if rng.random() < 0.2 else 1, heaviest)
        return oracle.Tenant(self.weights[path], demand)

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """The tenants' settings."""
        return tuple(Tenant(path, weight) for path, weight in self.weights.items())

    @property
    def snapshot(self) -> PoolSnapshot:
        """The pool as the package sees it."""
        return PoolSnapshot(
            pool="random",
            now=100,
            capacity=(("gpu", self.capacity),),
            tenants=self.tenants,
            waiting=tuple(
                WaitingRequest(
                    job.name,
                    "/".join(job.path),
                    (job.size,),
                    priority=-job.order[0],
                    submitted_at=job.order[1],
                )
                for job in self.jobs
            ),
            policy=NO_PREEMPTION,
        )

    def demands(self) -> dict[str, tuple[int, ...]]:
        """What every user wants in all."""
        demands = {
            f"{org}/{project}/{user}": tenant.demand
            for org, projects in self.orgs.items()
            for project, users in projects.children.items()
            for user, tenant in users.children.items()
        }
        return {path: demand for path, demand in demands.items() if demand[0]}


def allocations(pool: RandomPool, started: set[str]) -> dict[str, int]:
    """GPUs held by every tenant at every level."""
    held = dict.fromkeys(pool.shares, 0)
    for job in pool.jobs:
        if job.name in started:
            for depth in (1, 2, 3):
                held["/".join(job.path[:depth])] += job.size
    return held


@pytest.mark.parametrize("block", range(4))
def test_divisible_shares_are_the_oracles(block: int) -> None:
    """Hierarchical weighted max-min equals progressive filling on fractions, exactly."""
    for seed in range(block, POOLS, 4):
        pool = RandomPool(seed, (1, 2, 5))
        shares = divisible((("gpu", pool.capacity),), tenants=pool.tenants, demands=pool.demands())
        for path, (numerator, denominator) in shares.items():
            assert Fraction(numerator, denominator) * pool.capacity == pool.shares[path], seed


@pytest.mark.parametrize("block", range(4))
def test_decided_shares_are_within_one_job_of_the_oracles(block: int) -> None:
    """Every tenant at every level holds less than one job more or less than its fair share."""
    for seed in range(block, POOLS, 4):
        pool = RandomPool(seed, (1,))
        started = {row.request_id for row in decide(pool.snapshot).admissions}
        for path, held in allocations(pool, started).items():
            assert abs(held - pool.shares[path]) < 1, (seed, path)


@pytest.mark.parametrize("block", range(4))
def test_admissions_are_those_of_a_naive_pass(block: int) -> None:
    """Heaps and integer keys choose the same jobs, in the same order, as fractions do."""
    for seed in range(block, POOLS // 3, 4):
        pool = RandomPool(seed, (1, 1, 2, 5))
        feasible = [job for job in pool.jobs if job.size <= pool.capacity]
        for job in [job for job in pool.jobs if job.size > pool.capacity]:
            org, project, user = job.path
            leaf = pool.orgs[org].children[project].children[user]
            leaf.demand = (leaf.demand[0] - job.size,)
        shares = oracle.hierarchical(Fraction(pool.capacity), pool.orgs)
        expected = oracle.admitted(pool.capacity, pool.weights, feasible, shares)
        assert [row.request_id for row in decide(pool.snapshot).admissions] == expected, seed


@pytest.mark.parametrize("block", range(4))
def test_jobs_of_many_sizes_come_as_near_as_one_job(block: int) -> None:
    """A tenant whose next job fits nowhere in its share is short of it by less than that job."""
    for seed in range(block, POOLS, 4):
        pool = RandomPool(seed, (1, 2, 3))
        if max((job.size for job in pool.jobs), default=0) > pool.capacity:
            continue
        started = {row.request_id for row in decide(pool.snapshot).admissions}
        held = allocations(pool, started)
        for org in pool.orgs:
            assert held[org] > pool.shares[org] - 3 or held[org] == pool.orgs[org].total()[0]


def test_the_worked_example_of_the_drf_paper() -> None:
    """9 CPUs and 18 GB, A needs <1, 4> and B <3, 1> a task: A runs three tasks and B two."""
    tasks: dict[str, tuple[int, ...]] = {"A": (1, 4), "B": (3, 1)}
    snapshot = PoolSnapshot(
        pool="paper",
        now=0,
        capacity=(("cpu", 9), ("memory", 18)),
        waiting=tuple(
            WaitingRequest(f"{user}{number}", user, task)
            for user, task in tasks.items()
            for number in range(9)
        ),
    )
    decisions = decide(snapshot)
    launched = {user: sum(row.tenant == user for row in decisions.admissions) for user in tasks}
    assert launched == {"A": 3, "B": 2}
    assert launched == oracle.drf_tasks((9, 18), tasks, dict.fromkeys(tasks, 9))
    assert {share.path: share.fair for share in decisions.shares} == {"A": (2, 3), "B": (2, 3)}


@pytest.mark.parametrize("block", range(2))
def test_dominant_shares_are_the_oracles(block: int) -> None:
    """With several resources shares are those of DRF, and nobody is short of them by a task."""
    for seed in range(block, POOLS // 2, 2):
        rng = random.Random(seed)
        axes = rng.randint(2, 3)
        capacities = tuple(rng.randint(5, 40) for _ in range(axes))
        tasks = {}
        counts = {}
        for number in range(rng.randint(1, 5)):
            task = tuple(rng.randint(0, 4) for _ in range(axes))
            if max(task):
                tasks[f"t{number}"] = task
                counts[f"t{number}"] = rng.randint(1, 12)
        weights = {user: rng.randint(1, 3) for user in tasks}
        demands = {
            user: tuple(amount * counts[user] for amount in task) for user, task in tasks.items()
        }
        tenants = {user: oracle.Tenant(weights[user], demands[user]) for user in tasks}
        expected = oracle.dominant_fairness(capacities, tenants)
        capacity = tuple((f"r{axis}", amount) for axis, amount in enumerate(capacities))
        settings_ = tuple(Tenant(user, weight) for user, weight in weights.items())
        shares = divisible(capacity, tenants=settings_, demands=demands)
        for user, (numerator, denominator) in shares.items():
            assert abs(Fraction(numerator, denominator) - expected[user]) < Fraction(1, 2**20), seed
        snapshot = PoolSnapshot(
            pool="drf",
            now=0,
            capacity=capacity,
            tenants=settings_,
            waiting=tuple(
                WaitingRequest(f"{user}-{number:02}", user, task)
                for user, task in tasks.items()
                for number in range(counts[user])
            ),
            policy=NO_PREEMPTION,
        )
        admissions = decide(snapshot).admissions
        for user, task in tasks.items():
            launched = sum(row.tenant == user for row in admissions)
            one = max(
                Fraction(amount, total) for amount, total in zip(task, capacities, strict=True)
            )
            assert launched * one > expected[user] - one, seed


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 1_000_000)), min_size=2, max_size=8)
)
@settings(max_examples=300, deadline=None)
def test_integer_keys_order_as_fractions_do(pairs: list[tuple[int, int]]) -> None:
    """Scaled and rounded down, holdings for their weights compare exactly as fractions."""
    scale = ratio_scale([weight for _, weight in pairs])
    keys = [value * scale // weight for value, weight in pairs]
    fractions = [Fraction(value, weight) for value, weight in pairs]
    for left in range(len(pairs)):
        for right in range(len(pairs)):
            assert (keys[left] < keys[right]) == (fractions[left] < fractions[right])
