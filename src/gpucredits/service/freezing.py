"""From rows to a snapshot: the picture of a pool as the decision wants it.

Owns: what counts as running, how much a request may take, weights and past use of tenants.
Must not: decide, or read anything itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from gpucredits.core import ids
from gpucredits.core.account import lineage, org_of
from gpucredits.core.fairshare.decay import decayed
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
from gpucredits.store.picture import Key, LiveLease, OpenTicket, Picture
from gpucredits.store.pools import GpuPool
from gpucredits.store.queue import QueueState

RESOURCES: Final = ("gpu", "cpu", "memory")


def request_id(key: Key) -> str:
    """The id of a waiting request."""
    return ids.format_id(ids.QUEUE, *key)


def capacity_of(pool: GpuPool) -> Capacity:
    """What a pool has, only what has a bound."""
    amounts = zip(RESOURCES, (pool.gpus, pool.cpus, pool.memory), strict=True)
    return tuple((name, amount) for name, amount in amounts if amount is not None)


def policy_of(pool: GpuPool) -> Policy:
    """How a pool is shared."""
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


def freeze(picture: Picture, *, without: Collection[str] = ()) -> PoolSnapshot:
    """The snapshot of a picture, some requests left out."""
    capacity = capacity_of(picture.pool)
    names = [name for name, _ in capacity]
    running = [_running(lease, names) for lease in picture.running]
    running += [
        _admitting(ticket, names)
        for ticket in picture.waiting
        if ticket.state == QueueState.ADMITTING
    ]
    free = capacity[0][1] - sum(job.amounts[0] for job in running) if capacity else 0
    return PoolSnapshot(
        pool=picture.pool.name,
        now=picture.now,
        capacity=capacity,
        tenants=_tenants(picture),
        running=tuple(running),
        waiting=tuple(
            _waiting(ticket, names, free)
            for ticket in picture.waiting
            if ticket.state == QueueState.WAITING and request_id(ticket.key) not in without
        ),
        policy=policy_of(picture.pool),
    )


def granted(ticket: OpenTicket, free: int) -> int:
    """How many GPUs a request would take: fewer than it asks for, if it allows that."""
    if not ticket.allow_partial:
        return ticket.gpus
    most = min(ticket.gpus, ticket.gpus_max or ticket.gpus)
    return min(most, free) if free > 0 else most


def free_gpus(snapshot: PoolSnapshot) -> int:
    """GPUs that nobody holds now."""
    if not snapshot.capacity:
        return 0
    return snapshot.capacity[0][1] - sum(job.amounts[0] for job in snapshot.running)


def used_by_now(picture: Picture) -> dict[str, int]:
    """Past use of each account in GPU-milliseconds, faded to the moment of the picture."""
    half_life_ms = picture.pool.half_life_ms
    if not half_life_ms:
        return {}
    since = picture.used_until or picture.now
    elapsed_ms = max(picture.now - since, 0) // 1_000
    used = {
        path: decayed(usage, elapsed_ms=elapsed_ms, half_life_ms=half_life_ms)
        for path, usage in picture.usage.items()
    }
    for lease in picture.running:
        ran_ms = max(picture.now - max(since, lease.admitted_at), 0) // 1_000
        used[lease.account] = used.get(lease.account, 0) + lease.gpus * ran_ms
    return {path: usage for path, usage in used.items() if usage}


def _tenants(picture: Picture) -> tuple[Tenant, ...]:
    tenants = {
        path: Tenant(path, weight, 0, may_borrow) for path, weight, may_borrow in picture.weights
    }
    if not picture.pool.borrowing:
        rows: list[LiveLease | OpenTicket] = [*picture.running, *picture.waiting]
        for org in {org_of(row.account) for row in rows}:
            tenants.setdefault(org, Tenant(org, may_borrow=False))
    totals: dict[str, int] = {}
    for path, usage in used_by_now(picture).items():
        for ancestor in lineage(path):
            totals[ancestor] = totals.get(ancestor, 0) + usage
    for path, usage in totals.items():
        tenants[path] = tenants.get(path, Tenant(path))._replace(usage=usage)
    return tuple(sorted(tenants.values()))


def _amounts(names: list[str], gpus: int, cpus: int, memory: int) -> Amounts:
    given = dict(zip(RESOURCES, (gpus, cpus, memory), strict=True))
    return tuple(given[name] for name in names)


def _running(lease: LiveLease, names: list[str]) -> RunningJob:
    """A lease; told to stop, it goes by its deadline, or its promised end if it has not heard."""
    stopping_at = max(lease.stopping_at, lease.expires_at) if lease.stopping_at else None
    expected_end = lease.admitted_at + lease.expected_ms * 1_000 if lease.expected_ms else None
    return RunningJob(
        ids.format_id(ids.RESERVATION, lease.org_id, lease.reservation_id),
        lease.account,
        _amounts(names, lease.gpus, lease.cpus, lease.memory),
        lease.priority,
        lease.admitted_at,
        expected_end,
        lease.preemptible,
        lease.gang,
        stopping_at,
        expected_end if lease.overtook else None,
    )


def _admitting(ticket: OpenTicket, names: list[str]) -> RunningJob:
    """A request that has its room already; it cannot be stopped before it has started."""
    gpus = ticket.granted
    return RunningJob(
        request_id(ticket.key),
        ticket.account,
        _amounts(names, gpus, _part(ticket.cpus, gpus, ticket), _part(ticket.memory, gpus, ticket)),
        ticket.priority,
        ticket.submitted_at,
        preemptible=False,
        gang=ticket.gang,
    )


def _waiting(ticket: OpenTicket, names: list[str], free: int) -> WaitingRequest:
    gpus = granted(ticket, free)
    return WaitingRequest(
        request_id(ticket.key),
        ticket.account,
        _amounts(names, gpus, _part(ticket.cpus, gpus, ticket), _part(ticket.memory, gpus, ticket)),
        ticket.priority,
        ticket.submitted_at,
        ticket.expected_ms or None,
        ticket.gang,
        ticket.gang_size,
        ticket.held_by,
    )


def _part(amount: int, gpus: int, ticket: OpenTicket) -> int:
    """What goes with some of the GPUs, rounded up."""
    return -(-amount * gpus // ticket.gpus)
