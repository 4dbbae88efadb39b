"""One cycle of a pool: who starts, who stops, who waits, where in the queue and why.

Owns: which requests take part and what starts together (gangs, and requests that fair share alone
cannot help), and the pass over everything that waits, in fair order.
Must not: change its snapshot, or apply what it decides.
"""

from __future__ import annotations

from operator import add, sub

from gpucredits.core.account import lineage
from gpucredits.core.fairshare.decisions import (
    Admission,
    Basis,
    Decisions,
    Preemption,
    Share,
    WaitDecision,
    WaitReason,
)
from gpucredits.core.fairshare.filling import Vector
from gpucredits.core.fairshare.room import HeadGuard, Horizon, Victim, Victims, Walk, fits
from gpucredits.core.fairshare.snapshot import PoolSnapshot, Tenant, WaitingRequest
from gpucredits.core.fairshare.tree import Node, Tree, WorkUnit, fill, share_of


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
    """The decisions for a pool that has nothing to divide.

    Without a capacity, every request that no other gate holds may start: by priority, then by age.
    A capacity of 0 drains the pool: no request that needs any of it starts, no job is stopped, and
    every share is 0.
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
    """Shares of 0 for all tenants that hold or want something of a pool that has nothing."""
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


def decide(snapshot: PoolSnapshot) -> Decisions:
    """Decide one cycle. The same snapshot, in whatever order its rows are, decides the same."""
    if not any(amount for _, amount in snapshot.capacity):
        return ungated(snapshot)
    cycle = _Cycle(snapshot)
    while (leaf := cycle.tree.next_leaf()) is not None and cycle.looks_on():
        cycle.consider(leaf)
    if snapshot.policy.rank_all:
        cycle.rank_rest()
    return cycle.decisions()


class _Cycle:
    """The state of one pass.

    ``free`` is what can be taken now. ``coming`` is what stopping work gives back by ``coming_at``
    and nobody has a claim to yet. The head is the first unit in fair order that cannot start; the
    guard keeps whoever overtakes it from delaying it.
    """

    def __init__(self, snapshot: PoolSnapshot) -> None:
        self.snapshot = snapshot
        self.policy = snapshot.policy
        self.tree = Tree(snapshot)
        stopping = self.tree.load_running(snapshot.running)
        self.coming = self.tree.zero
        for job in stopping:
            self.coming = tuple(map(add, self.coming, self.tree.vector(job.amounts)))
        self.coming_at = max((at for job in stopping if (at := job.stopping_at)), default=0)
        self.free: Vector = tuple(
            self.tree.capacity - held - coming
            for held, coming in zip(self.tree.held(), self.coming, strict=True)
        )
        self.outside = gather_units(snapshot, self.tree)
        fill(self.tree)
        self.tree.start_queue()
        self.horizon = Horizon(snapshot, self.tree, stopping)
        self.victims = Victims(snapshot, self.tree, self.horizon.stopped)
        self.horizon.overdue = [
            (job.job_id, self.tree.vector(job.amounts))
            for victim in self.victims.overdue
            for job in victim.jobs
        ]
        self.admissions: list[Admission] = []
        self.admitted: list[WorkUnit] = []
        self.preemptions: list[Preemption] = []
        self.waiting: list[WaitDecision] = []
        self.ranked: list[tuple[WorkUnit, int]] = []
        self.position = 0
        self.gained: dict[Node, Vector] = {}
        self.guard: HeadGuard | None = None
        self.head_id = ""
        self.is_held_for_head = False
        self.behind_head = 0

    def looks_on(self) -> bool:
        """Whether the units behind the head are still worth a look."""
        return self.guard is None or self.behind_head < self.policy.backfill_depth

    def consider(self, leaf: Node) -> None:
        """Admit the unit whose turn it is, make room for it, or let it wait."""
        unit, org = leaf.head, self.tree.lineage(leaf)[2]
        if unit is None:
            raise ValueError("a tenant whose turn it is has a unit")
        if self.guard is not None:
            self.behind_head += 1
        if not org.may_borrow and org.dominant_with(unit.need) > org.entitled:
            self._wait_for_entitlement(unit, org)
            self.tree.advance(leaf, None)
            return
        chosen: list[Victim] = []
        if fits(unit.need, self.free):
            reason = self._held_back(unit)
            if reason is None:
                self._admit(unit, leaf)
            else:
                self._wait(unit, reason)
        elif (stopped := self._make_room(unit, leaf)) is not None:
            chosen = stopped
        else:
            self._wait(unit, WaitReason.CAPACITY)
            if self.guard is None:
                self._make_head(unit, org)
        self.tree.advance(leaf, unit.need)
        for victim in chosen:
            self.tree.reorder(victim.leaf)

    def rank_rest(self) -> None:
        """Give all units beyond the depth of backfill a place and a reason; none can start."""
        tree, free = self.tree, self.free
        fitting = WaitReason.BACKFILL_DEPTH if self.policy.backfill else WaitReason.BACKFILL_OFF
        while (leaf := tree.next_leaf()) is not None:
            unit, org = leaf.head, tree.lineage(leaf)[2]
            if unit is None:
                raise ValueError("a tenant whose turn it is has a unit")
            if not org.may_borrow and org.dominant_with(unit.need) > org.entitled:
                self._wait_for_entitlement(unit, org)
                tree.advance(leaf, None)
            else:
                self._wait(unit, fitting if fits(unit.need, free) else WaitReason.CAPACITY)
                tree.advance(leaf, unit.need)

    def _admit(self, unit: WorkUnit, leaf: Node) -> None:
        self.free = tuple(map(sub, self.free, unit.need))
        self.gained[leaf] = tuple(map(add, self.gained.get(leaf, self.tree.zero), unit.need))
        if unit.duration_ms is not None:
            self.horizon.add(self.snapshot.now + unit.duration_ms * 1_000, unit.need)
        if self.guard is not None:
            basis = Basis.BACKFILLED
        else:
            basis = Basis.BORROWED if self.tree.root.heap[0][1] > 2 else Basis.SHARE
        self.admitted.append(unit)
        for request in unit.requests:
            self.admissions.append(Admission(request.request_id, request.tenant, basis))

    def _held_back(self, unit: WorkUnit) -> WaitReason | None:
        """Why a unit that would fit may not overtake the head; None when it may."""
        if self.guard is None:
            return None
        if not self.policy.backfill:
            return WaitReason.BACKFILL_OFF
        if self.is_held_for_head:
            return WaitReason.HELD_FOR_HEAD
        if not self.guard.admits(unit.need, self._end(self.snapshot.now, unit)):
            return WaitReason.WOULD_DELAY_HEAD
        return None

    def _make_room(self, unit: WorkUnit, leaf: Node) -> list[Victim] | None:
        """Promise the unit the room that comes free; stop others' work if it must be."""
        if not max(self.coming) and (self.victims.are_spent or not self.policy.preemption):
            return None
        if self.guard is not None and not self.policy.backfill:
            return None
        lacking = tuple(map(sub, map(sub, unit.need, self.free), self.coming))
        lacking = tuple(lack if want else 0 for lack, want in zip(lacking, unit.need, strict=True))
        chosen: list[Victim] = []
        starts_at = self.coming_at
        if max(lacking) > 0:
            if self.policy.preemption and self.guard is None:
                chosen = self.victims.choose_overdue(lacking)
            if self.policy.preemption and not chosen:
                chosen = self.victims.choose(unit, leaf, lacking)
            if not chosen:
                return None
            starts_at = max(starts_at, self.snapshot.now + self.policy.grace_ms * 1_000)
        if self.guard is not None and not self._leaves_head_alone(unit, chosen, starts_at):
            self.victims.spare(chosen)
            return None
        self._promise(unit, chosen, starts_at)
        return chosen

    def _leaves_head_alone(self, unit: WorkUnit, chosen: list[Victim], starts_at: int) -> bool:
        """Whether the head still starts on time; room that it did not count on may be taken."""
        guard = self.guard
        if guard is None or guard.starts_at is None:
            return not self.is_held_for_head
        taken = unit.need
        for victim in chosen:
            for job in victim.jobs:
                if job.expected_end is None or job.expected_end > guard.starts_at:
                    taken = tuple(map(sub, taken, self.tree.vector(job.amounts)))
        taken = tuple(max(amount, 0) for amount in taken)
        return guard.admits(taken, self._end(starts_at, unit))

    def _promise(self, unit: WorkUnit, chosen: list[Victim], starts_at: int) -> None:
        self._wait(unit, WaitReason.MAKING_ROOM, starts_at)
        coming = self.coming
        for victim in chosen:
            coming = tuple(map(add, coming, victim.amounts))
            lost = self.gained.get(victim.leaf, self.tree.zero)
            self.gained[victim.leaf] = tuple(map(sub, lost, victim.amounts))
            self.horizon.stopped.update(job.job_id for job in victim.jobs)
            self._preempt(victim, unit)
        taken = tuple(map(min, unit.need, coming))
        self.coming = tuple(map(sub, coming, taken))
        self.coming_at = starts_at
        self.free = tuple(map(add, map(sub, self.free, unit.need), taken))
        end = self._end(starts_at, unit)
        if end is not None:
            self.horizon.add(end, unit.need)

    def _preempt(self, victim: Victim, unit: WorkUnit) -> None:
        held = share_of((max(victim.above.before), 1), self.tree)
        fair = share_of(victim.above.fair, self.tree)
        stop_at = self.snapshot.now + self.policy.grace_ms * 1_000
        for job in victim.jobs:
            self.preemptions.append(
                Preemption(
                    job.job_id,
                    job.tenant,
                    stop_at,
                    unit.requests[0].request_id,
                    victim.above.path,
                    held,
                    fair,
                    victim.overdue,
                )
            )

    def _make_head(self, unit: WorkUnit, org: Node) -> None:
        walk = Walk(self.horizon, self.free, (self.coming_at, self.coming))
        self.guard = HeadGuard(walk, unit.need)
        self.head_id = unit.requests[0].request_id
        waited_ms = (self.snapshot.now - unit.submitted_at) // 1_000
        self.is_held_for_head = (
            self.guard.starts_at is None
            and 0 < self.policy.hold_after_ms <= waited_ms
            and org.below_share
        )

    def _wait(self, unit: WorkUnit, reason: WaitReason, starts_at: int | None = None) -> None:
        axis = 0
        while axis < len(self.free) - 1 and unit.need[axis] <= self.free[axis]:
            axis += 1
        self._queue(unit, reason, axis, self.free[axis], starts_at)

    def _wait_for_entitlement(self, unit: WorkUnit, org: Node) -> None:
        totals = tuple(map(add, org.held, unit.need))
        axis = totals.index(max(totals))
        self._queue(unit, WaitReason.BORROWING_OFF, axis, org.entitled - org.held[axis], None)

    def _queue(
        self, unit: WorkUnit, reason: WaitReason, axis: int, space: int, starts_at: int | None
    ) -> None:
        """Give a unit its place in the queue, with the numbers of what it waits for."""
        self.position += 1
        if self.position <= self.policy.estimate_depth:
            self.ranked.append((unit, len(self.waiting)))
        scale = self.tree.scales[axis]
        name, needed = self.tree.names[axis], unit.need[axis] // scale
        available = space // scale if space > 0 else 0
        place, behind = self.position, self.head_id
        for request in unit.requests:
            self.waiting.append(
                WaitDecision(
                    request[0],
                    request[1],
                    place,
                    reason,
                    name,
                    needed,
                    available,
                    behind,
                    starts_at,
                )
            )

    @staticmethod
    def _end(start: int, unit: WorkUnit) -> int | None:
        return None if unit.duration_ms is None else start + unit.duration_ms * 1_000

    def decisions(self) -> Decisions:
        """Everything decided, with start estimates and shares."""
        self._estimate()
        self._mark_overtaking()
        return Decisions(
            pool=self.snapshot.pool,
            now=self.snapshot.now,
            admissions=tuple(self.admissions),
            preemptions=tuple(self.preemptions),
            waiting=(*self.waiting, *self._unranked(), *self.outside),
            shares=self._shares(),
        )

    def _unranked(self) -> list[WaitDecision]:
        """The requests that were too far behind to be looked at."""
        return [
            WaitDecision(request.request_id, request.tenant, 0, WaitReason.NOT_RANKED)
            for _, leaf in sorted(self.tree.leaves.items())
            for unit in leaf.units[leaf.cursor :]
            for request in unit.requests
        ]

    def _estimate(self) -> None:
        """Start estimates: everybody in turn, if nothing new comes and jobs end as expected."""
        walk = Walk(self.horizon, self.free, (self.coming_at, self.coming))
        for unit, first in self.ranked:
            if self.waiting[first].reason in {WaitReason.MAKING_ROOM, WaitReason.BORROWING_OFF}:
                continue
            start = walk.wait_for(unit.need)
            if start is None:
                return
            walk.start(unit.need, unit.duration_ms)
            for index in range(first, first + len(unit.requests)):
                self.waiting[index] = self.waiting[index]._replace(starts_at=start)

    def _mark_overtaking(self) -> None:
        """Mark the requests that start before an earlier request that waits on."""
        left_behind = [
            unit.submitted_at
            for unit, first in self.ranked
            if self.waiting[first].reason is WaitReason.CAPACITY
        ]
        if not left_behind:
            return
        oldest, place = min(left_behind), 0
        for unit in self.admitted:
            for _ in unit.requests:
                row = self.admissions[place]
                if unit.submitted_at > oldest or row.basis is Basis.BACKFILLED:
                    self.admissions[place] = row._replace(overtakes=True)
                place += 1

    def _shares(self) -> tuple[Share, ...]:
        tree = self.tree
        after: dict[Node, Vector] = {}
        for leaf, gained in self.gained.items():
            for node in tree.lineage(leaf):
                after[node] = tuple(map(add, after.get(node, node.before), gained))
        return tuple(
            Share(
                node.path,
                node.weight,
                share_of(node.fair, tree),
                (max(node.before), tree.capacity),
                (max(after.get(node, node.before)), tree.capacity),
            )
            for node in tree.nodes()
            if node.name
        )
