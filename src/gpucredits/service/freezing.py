"""From rows to a snapshot: the picture of a pool as the decision wants it.

Owns: what counts as running and what as stopping, how much a request may take, weights and past
use of tenants.
Must not: decide, or read anything itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
from gpucredits.store.picture import WAITING_MAX, Drain, Key, LiveLease, OpenTicket, Picture
from gpucredits.store.pools import GpuPool
from gpucredits.store.queue import QueueState

RESOURCES: Final = ("gpu", "cpu", "memory")
Room = dict[str, int]  # how much of each resource


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
    goes_on = {(drain.org_id, drain.reservation_id) for drain in needless(picture)}
    running = [
        _running(lease, names, goes_on=(lease.org_id, lease.reservation_id) in goes_on)
        for lease in picture.running
    ]
    running += [
        _admitting(ticket, names)
        for ticket in picture.waiting
        if ticket.state == QueueState.ADMITTING
    ]
    free = _room(capacity, [job.amounts for job in running])
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


def needless(picture: Picture) -> list[Drain]:
    """Leases that make room for a request which no longer waits for room.

    It left, was admitted, or another gate holds it: its account was suspended, say, or ran out of
    credits. Where there is no capacity, nobody needs room. Of a queue that is too long to be looked
    at as a whole nothing is known.
    """
    if not picture.pool.gates:
        return picture.drains
    if len(picture.waiting) >= WAITING_MAX:
        return []
    waiting = {ticket.queue_id for ticket in picture.waiting if not ticket.held_by}
    return [drain for drain in picture.drains if drain.stopping_for not in waiting]


def granted(ticket: OpenTicket, free: Room) -> int:
    """How many GPUs a request would take: fewer than it asks for, if it allows that."""
    if not ticket.allow_partial:
        return ticket.gpus
    return fitting(ticket, free) or _most(ticket)


def fitting(ticket: OpenTicket, free: Room) -> int:
    """How many of the GPUs that a request would take there is room for, all resources counted."""
    asked = dict(zip(RESOURCES, (ticket.gpus, ticket.cpus, ticket.memory), strict=True))
    parts = [ticket.gpus * max(free[name], 0) // asked[name] for name in free if asked[name]]
    return min(_most(ticket), *parts) if parts else 0


def room_in(snapshot: PoolSnapshot, *, without: Collection[str] = ()) -> Room:
    """What nobody holds now, nor would hold of some requests."""
    held = [job.amounts for job in snapshot.running]
    held += [each.amounts for each in snapshot.waiting if each.request_id in without]
    return _room(snapshot.capacity, held)


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


def _most(ticket: OpenTicket) -> int:
    """The most GPUs that a request would take: no more than another gate is known to leave."""
    return min(ticket.gpus, ticket.gpus_max or ticket.gpus)


def _room(capacity: Capacity, held: Sequence[Amounts]) -> Room:
    return {
        name: amount - sum(amounts[axis] for amounts in held)
        for axis, (name, amount) in enumerate(capacity)
    }


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


def _running(lease: LiveLease, names: list[str], *, goes_on: bool) -> RunningJob:
    """A lease; one that was told to stop is gone by its deadline, unless it goes on after all."""
    stopping_at = lease.stopping_at if lease.stopping_at and not goes_on else None
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


def _waiting(ticket: OpenTicket, names: list[str], free: Room) -> WaitingRequest:
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
