"""Which requests take part in a cycle, and what starts together.

Owns: gangs, and requests that fair share alone cannot help.
Must not: order tenants.
"""

from __future__ import annotations

from gpucredits.core.account import lineage
from gpucredits.core.fairshare.decisions import (
    Admission,
    Basis,
    Decisions,
    Share,
    WaitDecision,
    WaitReason,
)
from gpucredits.core.fairshare.snapshot import PoolSnapshot, Tenant, WaitingRequest
from gpucredits.core.fairshare.tree import Tree, WorkUnit


def gather_units(snapshot: PoolSnapshot, tree: Tree) -> list[WaitDecision]:
    """Queue every request that could start one day; give back the others with their reasons."""
    outside: list[WaitDecision] = []
    by_tenant: dict[str, list[WorkUnit]] = {}
    gangs: dict[tuple[str, str, int], list[WaitingRequest]] = {}
    vector, capacity = tree.vector, tree.capacity
    for request in snapshot.waiting:
        request_id, tenant, amounts, priority, submitted_at, duration_ms, gang, size, gate = request
        if gang:
            gangs.setdefault((tenant, gang, size), []).append(request)
            continue
        need = vector(amounts)
        if gate or tree.lacks_a_resource or max(need, default=0) > capacity:
            problem = _problem([request], snapshot)
            if problem:
                outside += problem
                continue
        unit = WorkUnit(-priority, submitted_at, request_id, need, duration_ms, (request,))
        if tenant in by_tenant:
            by_tenant[tenant].append(unit)
        else:
            by_tenant[tenant] = [unit]
    for (tenant, _, size), members in gangs.items():
        members.sort(key=_age)  # a name may be used again: who came first is of the first gang
        for start in range(0, len(members), size):
            unit = _gang_unit(sorted(members[start : start + size]), tree)
            problem = _problem(list(unit.requests), snapshot)
            outside += problem
            if not problem:
                by_tenant.setdefault(tenant, []).append(unit)
    for tenant, units in by_tenant.items():
        tree.load_waiting(tree.leaf(tenant), units)
    return sorted(outside)


def ungated(snapshot: PoolSnapshot) -> Decisions:
    """A pool that has nothing to divide.

    Without a capacity whoever no other gate holds may start, important and old first. With one of
    nothing it is being drained: nobody starts who needs any of it, nobody is made to stop, and
    nobody's share is more than nothing.
    """
    tree = Tree(snapshot)
    outside = gather_units(snapshot, tree)
    units = sorted(unit for leaf in tree.leaves.values() for unit in leaf.units)
    return Decisions(
        pool=snapshot.pool,
        now=snapshot.now,
        admissions=tuple(
            Admission(request.request_id, request.tenant, Basis.UNGATED)
            for unit in units
            for request in unit.requests
        ),
        waiting=tuple(outside),
        shares=_no_shares(snapshot, tree) if snapshot.capacity else (),
    )


def _no_shares(snapshot: PoolSnapshot, tree: Tree) -> tuple[Share, ...]:
    """Everybody who holds or wants something of a pool that has nothing."""
    tenants = {job.tenant for job in snapshot.running}
    tenants |= {request.tenant for request in snapshot.waiting}
    paths = {path for tenant in tenants for path in lineage(tenant)}
    nothing = (0, 1)
    return tuple(
        Share(path, tree.settings.get(path, Tenant(path)).weight, nothing, nothing, nothing)
        for path in sorted(paths)
    )


def _age(request: WaitingRequest) -> tuple[int, str]:
    return request.submitted_at, request.request_id


def _gang_unit(members: list[WaitingRequest], tree: Tree) -> WorkUnit:
    """All members as one: as important as the most important, as old as the oldest."""
    vectors = [tree.vector(member.amounts) for member in members]
    durations = [member.duration_ms for member in members if member.duration_ms is not None]
    return WorkUnit(
        -max(member.priority for member in members),
        min(member.submitted_at for member in members),
        members[0].request_id,
        tuple(map(sum, zip(*vectors, strict=True))),
        max(durations) if len(durations) == len(members) else None,
        tuple(members),
    )


def _problem(members: list[WaitingRequest], snapshot: PoolSnapshot) -> list[WaitDecision]:
    """Why the members cannot start however long they wait here; empty when they can."""
    gates = sorted({member.held_by for member in members if member.held_by})
    if gates:
        return [_outside(member, WaitReason.OTHER_GATE, behind=gates[0]) for member in members]
    size = members[0].gang_size if members[0].gang else 1
    if len(members) < size:
        return [
            _outside(member, WaitReason.GANG_INCOMPLETE, needed=size, available=len(members))
            for member in members
        ]
    for axis, (name, capacity) in enumerate(snapshot.capacity):
        needed = sum(member.amounts[axis] for member in members)
        if needed > capacity:
            return [
                _outside(
                    member,
                    WaitReason.EXCEEDS_POOL if capacity else WaitReason.DRAINED,
                    resource=name,
                    needed=needed,
                    available=capacity,
                )
                for member in members
            ]
    return []


def _outside(
    member: WaitingRequest,
    reason: WaitReason,
    *,
    resource: str = "",
    needed: int = 0,
    available: int = 0,
    behind: str = "",
) -> WaitDecision:
    return WaitDecision(
        member.request_id, member.tenant, 0, reason, resource, needed, available, behind
    )
