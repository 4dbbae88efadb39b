"""What holds for every pool, however odd."""

from __future__ import annotations

import json
import random
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpucredits.core.fairshare import decide as decide_module
from gpucredits.core.fairshare.decay import decayed
from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import Decisions, WaitReason, dump, load, sentence
from gpucredits.core.fairshare.snapshot import (
    Policy,
    PoolSnapshot,
    RunningJob,
    Scope,
    Tenant,
    UsageOrder,
    WaitingRequest,
    check_snapshot,
)
from gpucredits.core.fairshare.tree import divisible

NOW = 10_000_000_000
MINUTE = 60_000_000
PATHS = st.sampled_from(
    ["a/p/x", "a/p/y", "a/q/x", "a/q", "b/p/x", "b/p/y", "b/p", "b", "c/q/y", "c/q/x"]
)
OVER = Fraction(1, 2**19)  # rounding of shares over several resources


@st.composite
def pools(draw: st.DrawFn, *, axes_max: int = 2, has_running: bool = True) -> PoolSnapshot:
    """A pool with anything in it."""
    axes = draw(st.integers(1, axes_max))
    amounts = st.tuples(*[st.integers(0, 4)] * axes)
    capacity = tuple((f"r{axis}", draw(st.integers(0, 16))) for axis in range(axes))
    paths = draw(st.lists(PATHS, unique=True, max_size=6))
    tenants = tuple(
        Tenant(path, draw(st.integers(0, 4)), draw(st.integers(0, 50)), draw(st.booleans()))
        for path in paths
    )
    running = tuple(
        RunningJob(
            f"j{index:02}",
            draw(PATHS),
            draw(amounts),
            draw(st.integers(0, 2)),
            NOW - draw(st.integers(0, 20)) * MINUTE,
            draw(st.one_of(st.none(), st.integers(-2, 30).map(lambda m: NOW + m * MINUTE))),
            draw(st.booleans()),
            draw(st.sampled_from(("", "", "g"))),
            draw(st.sampled_from((None, None, None, NOW + MINUTE))),
        )
        for index in range(draw(st.integers(0, 10)) if has_running else 0)
    )
    waiting = tuple(
        WaitingRequest(
            f"w{index:02}",
            draw(PATHS),
            draw(amounts),
            draw(st.integers(0, 2)),
            NOW - draw(st.integers(0, 90)) * MINUTE,
            draw(st.one_of(st.none(), st.integers(1, 40).map(lambda m: m * 60_000))),
            draw(st.sampled_from(("", "", "", "g", "h"))),
            draw(st.integers(1, 2)),
            draw(st.sampled_from(("", "", "", "", "credits"))),
        )
        for index in range(draw(st.integers(0, 12)))
    )
    policy = Policy(
        preemption=draw(st.booleans()),
        preemptions_max=draw(st.integers(0, 5)),
        backfill=draw(st.booleans()),
        backfill_depth=draw(st.sampled_from((0, 2, 100))),
        priority_scope=draw(st.sampled_from(Scope)),
        usage_order=draw(st.sampled_from(UsageOrder)),
        rank_all=draw(st.booleans()),
    )
    snapshot = PoolSnapshot(
        pool="any",
        now=NOW,
        capacity=capacity,
        tenants=tenants,
        running=running,
        waiting=waiting,
        policy=policy,
    )
    check_snapshot(snapshot)
    return snapshot


def used(snapshot: PoolSnapshot) -> list[int]:
    """How much of each resource running work uses."""
    return [
        sum(job.amounts[axis] for job in snapshot.running) for axis in range(len(snapshot.capacity))
    ]


def free_after(snapshot: PoolSnapshot, decisions: Decisions) -> list[int]:
    """What is free once the admitted have started; stopped work has not ended yet."""
    started = {row.request_id for row in decisions.admissions}
    return [
        amount
        - used(snapshot)[axis]
        - sum(row.amounts[axis] for row in snapshot.waiting if row.request_id in started)
        for axis, (_, amount) in enumerate(snapshot.capacity)
    ]


@given(pools())
@settings(max_examples=150, deadline=None)
def test_every_request_gets_one_answer_and_capacity_holds(snapshot: PoolSnapshot) -> None:
    """A request is admitted or waits, once; what starts fits in what is free."""
    decisions = decide(snapshot)
    answers = [row.request_id for row in decisions.admissions]
    answers += [row.request_id for row in decisions.waiting]
    assert sorted(answers) == sorted(row.request_id for row in snapshot.waiting)
    amounts = {row.request_id: row.amounts for row in snapshot.waiting}
    for axis, free in enumerate(free_after(snapshot, decisions)):
        taken = sum(amounts[row.request_id][axis] for row in decisions.admissions)
        assert free >= 0 or not taken
    positions = sorted({row.position for row in decisions.waiting} - {0})
    assert positions == list(range(1, len(positions) + 1))
    assert all(sentence(row) for row in decisions.waiting)


@given(pools(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_rows_means_nothing(snapshot: PoolSnapshot, rng: random.Random) -> None:
    """Shuffled rows, and rows that were dumped to JSON and loaded, decide the same."""
    decisions = decide(snapshot)
    shuffled = PoolSnapshot(
        pool=snapshot.pool,
        now=snapshot.now,
        capacity=snapshot.capacity,
        tenants=tuple(rng.sample(snapshot.tenants, len(snapshot.tenants))),
        running=tuple(rng.sample(snapshot.running, len(snapshot.running))),
        waiting=tuple(rng.sample(snapshot.waiting, len(snapshot.waiting))),
        policy=snapshot.policy,
    )
    assert decide(shuffled) == decisions
    replayed = load(json.loads(json.dumps(dump(shuffled))))
    assert decide(replayed) == decisions
    assert hash(replayed) == hash(load(dump(snapshot)))
    assert dump(replayed) == dump(snapshot)


@given(pools())
@settings(max_examples=150, deadline=None)
def test_nothing_lies_idle_that_could_be_used(snapshot: PoolSnapshot) -> None:
    """Whoever waits for capacity does not fit in what nobody has a claim to."""
    decisions = decide(snapshot)
    free = free_after(snapshot, decisions)
    amounts = {row.request_id: row.amounts for row in snapshot.waiting}
    promised = any(row.reason is WaitReason.MAKING_ROOM for row in decisions.waiting)
    for row in decisions.waiting:
        if row.reason is WaitReason.CAPACITY and not promised:
            gang = [other for other in decisions.waiting if other.position == row.position]
            needs = [
                sum(amounts[member.request_id][axis] for member in gang)
                for axis in range(len(free))
            ]
            assert any(need > space for need, space in zip(needs, free, strict=True))


def apply(snapshot: PoolSnapshot, decisions: Decisions) -> PoolSnapshot:
    """The pool after the decision: victims wait again, the admitted and the promised run."""
    stopped = {row.job_id for row in decisions.preemptions}
    ready = {row.request_id for row in decisions.admissions} | {
        row.request_id for row in decisions.waiting if row.reason is WaitReason.MAKING_ROOM
    }
    running = [
        job for job in snapshot.running if job.job_id not in stopped and job.stopping_at is None
    ]
    running += [
        RunningJob(f"r-{row.request_id}", row.tenant, row.amounts, row.priority, 0, gang=row.gang)
        for row in snapshot.waiting
        if row.request_id in ready
    ]
    waiting = [row for row in snapshot.waiting if row.request_id not in ready]
    waiting += [
        WaitingRequest(f"z-{job.job_id}", job.tenant, job.amounts, job.priority, NOW)
        for job in snapshot.running
        if job.job_id in stopped
    ]
    return PoolSnapshot(
        pool=snapshot.pool,
        now=NOW,
        capacity=snapshot.capacity,
        tenants=snapshot.tenants,
        running=tuple(running),
        waiting=tuple(waiting),
        policy=snapshot.policy,
    )


@given(pools(axes_max=1))
@settings(max_examples=150, deadline=None)
def test_preemption_takes_only_from_above_and_settles_down(snapshot: PoolSnapshot) -> None:
    """Victims' tenants were above their share, bounds hold, and cycles come to rest."""
    for _ in range(30):
        decisions = decide(snapshot)
        running = {job.job_id: job for job in snapshot.running}
        assert len(decisions.preemptions) <= snapshot.policy.preemptions_max
        assert snapshot.policy.preemption or not decisions.preemptions
        shares = {share.path: share for share in decisions.shares}
        for row in decisions.preemptions:
            job = running[row.job_id]
            assert job.preemptible
            assert NOW - job.started_at >= snapshot.policy.min_runtime_ms * 1_000
            assert f"{job.tenant}/".startswith(row.above)
            if row.above.endswith("/"):  # work of a tenant itself, beside those below it: no row
                assert row.above.removesuffix("/") in shares
                continue
            share = shares[row.above]
            assert Fraction(*share.before) > Fraction(*share.fair)
        if not decisions.preemptions and not decisions.admissions:
            return
        snapshot = apply(snapshot, decisions)
    raise AssertionError("the pool did not come to rest")


@given(pools())
@settings(max_examples=150, deadline=None)
def test_overtaking_never_delays_the_head(snapshot: PoolSnapshot) -> None:
    """With everyone who overtook it, the head starts no later than it was promised."""
    assume(any(amount for _, amount in snapshot.capacity))  # a drained pool has no head
    cycle = decide_module._Cycle(snapshot)
    while (leaf := cycle.tree.next_leaf()) is not None and cycle.looks_on():
        cycle.consider(leaf)
    if cycle.guard is None or cycle.guard.starts_at is None:
        return
    rows = {row.request_id: row for row in cycle.decisions().waiting}
    starts_at = rows[cycle.head_id].starts_at
    assert starts_at is not None
    assert starts_at <= cycle.guard.starts_at


DEMANDS = st.dictionaries(PATHS, st.integers(0, 30), min_size=1, max_size=8)
WEIGHTS = st.dictionaries(PATHS, st.integers(1, 6), max_size=8)


def shares_of(
    capacity: int, weights: dict[str, int], demands: dict[str, int]
) -> dict[str, Fraction]:
    """Divisible shares of one resource."""
    tenants = [Tenant(path, weight) for path, weight in weights.items()]
    wanted = {path: (amount,) for path, amount in demands.items()}
    found = divisible((("gpu", capacity),), tenants=tenants, demands=wanted)
    return {path: Fraction(*share) * capacity for path, share in found.items()}


@given(st.integers(1, 40), WEIGHTS, DEMANDS)
@settings(max_examples=150, deadline=None)
def test_divisible_shares_use_all_that_can_be_used(
    capacity: int, weights: dict[str, int], demands: dict[str, int]
) -> None:
    """The orgs' shares add up to the pool or to everything that is wanted."""
    shares = shares_of(capacity, weights, demands)
    total = sum(share for path, share in shares.items() if "/" not in path)
    assert total == min(capacity, sum(demands.values()))


@given(st.integers(1, 40), WEIGHTS, DEMANDS, st.integers(2, 5))
@settings(max_examples=150, deadline=None)
def test_an_org_gains_nothing_by_splitting_its_projects(
    capacity: int, weights: dict[str, int], demands: dict[str, int], parts: int
) -> None:
    """However an org divides its demand among projects, its share stays the same."""
    honest = shares_of(capacity, weights, demands)
    for org in {path.split("/")[0] for path in demands}:
        own = sum(amount for path, amount in demands.items() if path.split("/")[0] == org)
        split = {path: amount for path, amount in demands.items() if path.split("/")[0] != org}
        for part in range(parts):
            split[f"{org}/split{part}"] = own // parts + (part < own % parts)
        assert shares_of(capacity, weights, split)[org] == honest[org]


@given(st.integers(1, 40), WEIGHTS, DEMANDS, st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_nobody_gains_by_lying_about_demand(
    capacity: int, weights: dict[str, int], demands: dict[str, int], claimed: int
) -> None:
    """Asking for more or less than one wants never brings more of what one wants."""
    honest = shares_of(capacity, weights, demands)
    for path, wanted in demands.items():
        lying = shares_of(capacity, weights, demands | {path: claimed})
        assert min(lying[path], Fraction(wanted)) <= honest[path]


@given(st.integers(1, 40), WEIGHTS, DEMANDS, st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_more_weight_never_brings_less(
    capacity: int, weights: dict[str, int], demands: dict[str, int], extra: int
) -> None:
    """A tenant's share does not fall when its own weight rises."""
    before = shares_of(capacity, weights, demands)
    for path in demands:
        heavier = weights | {path: weights.get(path, 1) + extra}
        after: dict[str, Fraction] = shares_of(capacity, heavier, demands)
        assert after[path] >= before[path]


TASK = st.tuples(st.integers(1, 6), st.integers(1, 6))


@given(
    st.tuples(st.integers(8, 40), st.integers(8, 40)), st.lists(TASK, min_size=2, max_size=4), TASK
)
@settings(max_examples=150, deadline=None)
def test_nobody_gains_by_lying_about_resources(
    capacities: tuple[int, int], tasks: list[tuple[int, int]], lie: tuple[int, int]
) -> None:
    """With dominant shares, naming other amounts than a task needs never runs more of it."""
    capacity = (("cpu", capacities[0]), ("memory", capacities[1]))

    def run(named: list[tuple[int, int]]) -> Fraction:
        """How many of its true tasks the first tenant can run on what it is given."""
        demands = {f"t{n}": (cpu * 100, memory * 100) for n, (cpu, memory) in enumerate(named)}
        share = Fraction(*divisible(capacity, demands=demands)["t0"])
        dominant = max(Fraction(a, c) for a, c in zip(named[0], capacities, strict=True))
        given = [share / dominant * amount for amount in named[0]]
        return min(have / need for have, need in zip(given, tasks[0], strict=True))

    assert run([lie, *tasks[1:]]) <= run(tasks) + OVER * 100


@given(st.integers(0, 10**12), st.integers(0, 10**7), st.integers(0, 10**7), st.integers(1, 10**7))
@settings(max_examples=150, deadline=None)
def test_use_fades_steadily(usage: int, first_ms: int, second_ms: int, half_life_ms: int) -> None:
    """Decay never adds, more time forgets more, and two steps forget as much as one."""
    once = decayed(usage, elapsed_ms=first_ms, half_life_ms=half_life_ms)
    twice = decayed(once, elapsed_ms=second_ms, half_life_ms=half_life_ms)
    whole = decayed(usage, elapsed_ms=first_ms + second_ms, half_life_ms=half_life_ms)
    assert whole <= once <= usage
    assert abs(whole - twice) <= 2 + usage // 2**30
    halved = decayed(usage, elapsed_ms=3 * half_life_ms, half_life_ms=half_life_ms)
    assert halved == usage >> 3
    assert decayed(usage, elapsed_ms=first_ms, half_life_ms=0) == usage
