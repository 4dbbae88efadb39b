"""Turning a pool's rows into the snapshot for a decision, and running the decision on a server.

Owns: the jobs that count as running or stopping, the amounts of requests, and weights and past use
of tenants. A decision runs beside the event loop and without the garbage collector.
Must not: decide (core.fairshare does), or read anything itself.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from gpucredits.core import ids
from gpucredits.core.account import lineage, org_of
from gpucredits.core.fairshare.decay import decayed
from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import Decisions
from gpucredits.core.fairshare.snapshot import (
    Amounts,
    Capacity,
    Policy,
    PoolSnapshot,
    RunningJob,
    Scope,
    Tenant,
    UsageOrder,
    WaitingRequest,
)
from gpucredits.core.money import MILLI_PER_GPU, whole_gpus
from gpucredits.store.dispatch.pools import (
    WAITING_MAX,
    Drain,
    GpuPool,
    LiveLease,
    PoolRows,
)
from gpucredits.store.dispatch.queue import Key, QueuedRequest, QueueState

RESOURCES: Final = ("gpu", "cpu", "memory")
IN_THREAD_ROWS: Final = 2_000  # larger decisions do not hold up the event loop
Room = dict[str, int]  # how much of each resource


def request_id(key: Key) -> str:
    """The id of a waiting request."""
    return ids.format_id(ids.QUEUE, *key)


def capacity_of(pool: GpuPool) -> Capacity:
    """The capacity of a pool, without resources that have no bound."""
    amounts = zip(RESOURCES, (pool.milli_gpus, pool.cpus, pool.memory), strict=True)
    return tuple((name, amount) for name, amount in amounts if amount is not None)


def policy_of(pool: GpuPool) -> Policy:
    """The policy by which a pool is shared."""
    return Policy(
        preemption=pool.preemption,
        grace_ms=pool.grace_ms,
        min_runtime_ms=pool.min_runtime_ms,
        preemptions_max=pool.preemptions_max,
        backfill=pool.backfill,
        backfill_depth=pool.backfill_depth,
        hold_after_ms=pool.hold_after_ms,
        priority_scope=Scope[pool.priority_scope.upper()],
        usage_order=UsageOrder(pool.usage_order),
    )


def snapshot_of(rows: PoolRows, *, without: Collection[str] = ()) -> PoolSnapshot:
    """The snapshot of a pool's rows, without some requests."""
    capacity = capacity_of(rows.pool)
    names = [name for name, _ in capacity]
    goes_on = {(drain.org_id, drain.reservation_id) for drain in needless(rows)}
    running = [
        _running(lease, names, goes_on=(lease.org_id, lease.reservation_id) in goes_on)
        for lease in rows.running
    ]
    running += [
        _admitting(request, names)
        for request in rows.waiting
        if request.state == QueueState.ADMITTING
    ]
    free = _room(capacity, [job.amounts for job in running])
    return PoolSnapshot(
        pool=rows.pool.name,
        now=rows.now,
        capacity=capacity,
        tenants=_tenants(rows),
        running=tuple(running),
        waiting=tuple(
            _waiting(request, names, free)
            for request in rows.waiting
            if request.state == QueueState.WAITING and request_id(request.key) not in without
        ),
        policy=policy_of(rows.pool),
    )


async def decided(snapshot: PoolSnapshot) -> Decisions:
    """Decide with the garbage collector paused; beside the event loop if there are many rows."""
    if len(snapshot.running) + len(snapshot.waiting) < IN_THREAD_ROWS:
        return decided_at_once(snapshot)
    return await asyncio.to_thread(decided_at_once, snapshot)


def decided_at_once(snapshot: PoolSnapshot) -> Decisions:
    """Decide with the garbage collector paused: a decision makes many rows and no cycles."""
    with collector_paused():
        return decide(snapshot)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector for a block, if it is on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def needless(rows: PoolRows) -> list[Drain]:
    """The leases that drain for a request which no longer waits for room.

    The request left, was admitted, or is held by another gate, such as its account's suspension.
    Without a capacity, no request needs room. If the queue is too long to be read whole, no lease
    counts as needless.
    """
    if not rows.pool.gates:
        return rows.drains
    if len(rows.waiting) >= WAITING_MAX:
        return []
    waiting = {request.queue_id for request in rows.waiting if not request.held_by}
    return [drain for drain in rows.drains if drain.stopping_for not in waiting]


def granted(request: QueuedRequest, free: Room) -> int:
    """The GPUs that a request would take; maybe fewer than it asks for, if it allows that."""
    if not request.allow_partial:
        return request.milli_gpus
    return fitting(request, free) or _most(request)


def fitting(request: QueuedRequest, free: Room) -> int:
    """The GPUs that a request could get now, with room for its other resources too.

    A smaller number is rounded down to whole GPUs.
    """
    asked = dict(zip(RESOURCES, (request.milli_gpus, request.cpus, request.memory), strict=True))
    parts = [request.milli_gpus * max(free[name], 0) // asked[name] for name in free if asked[name]]
    room = min(_most(request), *parts) if parts else 0
    return room if room == request.milli_gpus else whole_gpus(room)


def room_in(snapshot: PoolSnapshot, *, without: Collection[str] = ()) -> Room:
    """The free room, less the room of some waiting requests."""
    held = [job.amounts for job in snapshot.running]
    held += [each.amounts for each in snapshot.waiting if each.request_id in without]
    return _room(snapshot.capacity, held)


def used_by_now(rows: PoolRows) -> dict[str, int]:
    """Past use of each account in GPU-milliseconds, decayed to the time of the rows."""
    half_life_ms = rows.pool.half_life_ms
    if not half_life_ms:
        return {}
    since = rows.used_until or rows.now
    elapsed_ms = max(rows.now - since, 0) // 1_000
    used = {
        path: decayed(usage, elapsed_ms=elapsed_ms, half_life_ms=half_life_ms)
        for path, usage in rows.usage.items()
    }
    for lease in rows.running:
        ran_ms = max(rows.now - max(since, lease.admitted_at), 0) // 1_000
        used[lease.account] = (
            used.get(lease.account, 0) + lease.milli_gpus * ran_ms // MILLI_PER_GPU
        )
    return {path: usage for path, usage in used.items() if usage}


def _most(request: QueuedRequest) -> int:
    """The most GPUs that a request would take, within the bound of another gate if known."""
    return min(request.milli_gpus, request.milli_gpus_max or request.milli_gpus)


def _room(capacity: Capacity, held: Sequence[Amounts]) -> Room:
    return {
        name: amount - sum(amounts[axis] for amounts in held)
        for axis, (name, amount) in enumerate(capacity)
    }


def _tenants(rows: PoolRows) -> tuple[Tenant, ...]:
    tenants = {
        path: Tenant(path, weight, 0, may_borrow) for path, weight, may_borrow in rows.weights
    }
    if not rows.pool.borrowing:
        counted: list[LiveLease | QueuedRequest] = [*rows.running, *rows.waiting]
        for org in {org_of(row.account) for row in counted}:
            tenants.setdefault(org, Tenant(org, may_borrow=False))
    totals: dict[str, int] = {}
    for path, usage in used_by_now(rows).items():
        for ancestor in lineage(path):
            totals[ancestor] = totals.get(ancestor, 0) + usage
    for path, usage in totals.items():
        tenants[path] = tenants.get(path, Tenant(path))._replace(usage=usage)
    return tuple(sorted(tenants.values()))


def _amounts(names: list[str], milli_gpus: int, cpus: int, memory: int) -> Amounts:
    given = dict(zip(RESOURCES, (milli_gpus, cpus, memory), strict=True))
    return tuple(given[name] for name in names)


def _running(lease: LiveLease, names: list[str], *, goes_on: bool) -> RunningJob:
    """A lease as a running job; if it drains and its room is needed, it ends by its deadline."""
    stopping_at = lease.stopping_at if lease.stopping_at and not goes_on else None
    expected_end = lease.admitted_at + lease.expected_ms * 1_000 if lease.expected_ms else None
    return RunningJob(
        ids.format_id(ids.RESERVATION, lease.org_id, lease.reservation_id),
        lease.account,
        _amounts(names, lease.milli_gpus, lease.cpus, lease.memory),
        lease.priority,
        lease.admitted_at,
        expected_end,
        lease.preemptible,
        lease.gang,
        stopping_at,
        expected_end if lease.overtook else None,
    )


def _admitting(request: QueuedRequest, names: list[str]) -> RunningJob:
    """A claimed request as a running job, which cannot be stopped before it starts."""
    return RunningJob(
        request_id(request.key),
        request.account,
        _taken(request, names, request.granted),
        request.priority,
        request.submitted_at,
        preemptible=False,
        gang=request.gang,
    )


def _waiting(request: QueuedRequest, names: list[str], free: Room) -> WaitingRequest:
    return WaitingRequest(
        request_id(request.key),
        request.account,
        _taken(request, names, granted(request, free)),
        request.priority,
        request.submitted_at,
        request.expected_ms or None,
        request.gang,
        request.gang_size,
        request.held_by,
    )


def _taken(request: QueuedRequest, names: list[str], milli_gpus: int) -> Amounts:
    """Some of a request's GPUs with their part of its other resources, rounded up."""
    whole = request.milli_gpus
    cpus, memory = (-(-each * milli_gpus // whole) for each in (request.cpus, request.memory))
    return _amounts(names, milli_gpus, cpus, memory)
