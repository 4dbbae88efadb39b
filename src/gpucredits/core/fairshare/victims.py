"""Whose work makes room: the least important and youngest of tenants above their share.

Owns: the choice of running work to stop for one unit that waits.
Must not: stop anything, or take from a tenant at or below its share.

Where the paths of the waiting and the running tenant part, the one must stay within its share
with the unit and the other be above its own. So a swap never turns the tables, and what was
preempted can never preempt back.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from operator import add, sub
from typing import Final, NamedTuple

from gpucredits.core.fairshare.filling import Vector
from gpucredits.core.fairshare.snapshot import PoolSnapshot, RunningJob
from gpucredits.core.fairshare.tree import Node, Tree, Unit

CANDIDATES_MAX: Final = 1_000  # how much work that would not help is passed over for one unit


class Victim(NamedTuple):
    """What stops together: one job, or a gang; the least important and youngest sorts first."""

    order: tuple[int, int, str]
    amounts: Vector
    jobs: tuple[RunningJob, ...]
    leaf: Node
    above: Node


class Victims:
    """Work that may be stopped in one cycle, looked up only when somebody needs room."""

    def __init__(
        self, snapshot: PoolSnapshot, tree: Tree, by_tenant: dict[str, list[RunningJob]]
    ) -> None:
        self._tree = tree
        self._by_tenant = by_tenant
        self._latest_start = snapshot.now - snapshot.policy.min_runtime_ms * 1_000
        self._left = snapshot.policy.preemptions_max
        self._attempts = snapshot.policy.preemptions_max
        self._heaps: dict[Node, list[Victim]] | None = None
        self._fruitless: set[tuple[str, Vector]] = set()

    @property
    def are_spent(self) -> bool:
        """Whether this cycle's bounds leave no more to try."""
        return self._attempts <= 0 or self._left <= 0

    def choose(self, unit: Unit, leaf: Node, lacking: Vector) -> list[Victim]:
        """The work to stop so that the lacking amounts come free; empty when it cannot be done.

        What is chosen is taken from its tenants at once; their places in the queue are not yet
        put right (see ``Tree.reorder``).
        """
        if self.are_spent or (leaf.path, unit.need) in self._fruitless:
            return []
        self._attempts -= 1
        chosen, lacking = self._collect(unit, leaf, lacking)
        if _lacks(lacking) or sum(len(victim.jobs) for victim in chosen) > self._left:
            for victim in chosen:
                self._give_back(victim)
            self._fruitless.add((leaf.path, unit.need))
            return []
        needed = self._needed(chosen, lacking)
        self._left -= sum(len(victim.jobs) for victim in needed)
        return needed

    def spare(self, chosen: list[Victim]) -> None:
        """Let chosen work run on after all."""
        for victim in chosen:
            self._give_back(victim)
            self._left += len(victim.jobs)

    def _collect(self, unit: Unit, leaf: Node, lacking: Vector) -> tuple[list[Victim], Vector]:
        """Take victims in order until nothing lacks, none is left, or the cycle's bound is met."""
        heaps = self._candidates()
        chosen: list[Victim] = []
        useless: list[Victim] = []
        left = self._left
        frontier = [
            (heaps[victim_leaf][0].order, victim_leaf.path, victim_leaf, top)
            for victim_leaf, top in self._tenants_above(leaf, unit.need)
        ]
        heapify(frontier)
        while frontier and _lacks(lacking):
            _, path, victim_leaf, top = heappop(frontier)
            heap = heaps[victim_leaf]
            victim = heap[0]
            if not _above_up_to(victim_leaf, top) or self._outranks(victim, unit, top):
                continue
            heappop(heap)
            if not any(want > 0 < gain for want, gain in zip(lacking, victim.amounts, strict=True)):
                useless.append(victim)
            else:
                left -= len(victim.jobs)
                for node in self._tree.lineage(victim_leaf):
                    node.let_go(victim.amounts)
                lacking = tuple(map(sub, lacking, victim.amounts))
                chosen.append(victim._replace(above=top))
            if left < 0 or len(useless) > CANDIDATES_MAX:
                break
            if heap:
                heappush(frontier, (heap[0].order, path, victim_leaf, top))
        for victim in useless:
            heappush(heaps[victim.leaf], victim)
        return chosen, lacking

    def _needed(self, chosen: list[Victim], lacking: Vector) -> list[Victim]:
        """Spare whoever turns out not to be needed, the most important first."""
        needed: list[Victim] = []
        for victim in reversed(chosen):
            without = tuple(map(add, lacking, victim.amounts))
            if _lacks(without):
                needed.append(victim)
            else:
                lacking = without
                self._give_back(victim)
        needed.reverse()
        return needed

    def _give_back(self, victim: Victim) -> None:
        for node in self._tree.lineage(victim.leaf):
            node.hold(victim.amounts)
        heappush(self._candidates()[victim.leaf], victim)

    def _outranks(self, victim: Victim, unit: Unit, top: Node) -> bool:
        """Whether the policy's order of priorities protects the victim from this unit."""
        return self._tree.priority_counts(top) and victim.order[0] > -unit.order[0]

    def _tenants_above(self, leaf: Node, need: Vector) -> Iterator[tuple[Node, Node]]:
        """Leaves above their share, each with the ancestor that the unit's tenant competes with."""
        heaps = self._candidates()
        below = True
        for node in self._tree.lineage(leaf):
            if not below:
                return
            tier = node.tier(need)
            if tier == 0 and node.weight and node.parent is not None:
                for rival in node.parent.children.values():
                    if rival is not node and rival.above_share:
                        for victim_leaf in _leaves_above(rival):
                            if heaps.get(victim_leaf):
                                yield victim_leaf, rival
            below = tier <= 1

    def _candidates(self) -> dict[Node, list[Victim]]:
        """Stoppable work of every leaf that is above its share, as heaps."""
        if self._heaps is None:
            self._heaps = {}
            for tenant, jobs in self._by_tenant.items():
                leaf = self._tree.leaves[tenant]
                if leaf.above_share:
                    heap = self._heaps[leaf] = self._stoppable(leaf, jobs)
                    heapify(heap)
        return self._heaps

    def _stoppable(self, leaf: Node, jobs: list[RunningJob]) -> list[Victim]:
        vector = self._tree.vector
        latest_start = self._latest_start
        found: list[Victim] = []
        gangs: dict[str, list[RunningJob]] = {}
        for job in jobs:
            if job.gang:
                gangs.setdefault(job.gang, []).append(job)
            elif job.preemptible and job.started_at <= latest_start:
                order = (job.priority, -job.started_at, job.job_id)
                found.append(Victim(order, vector(job.amounts), (job,), leaf, leaf))
        for members in gangs.values():
            if all(job.preemptible and job.started_at <= latest_start for job in members):
                order = max((job.priority, -job.started_at, job.job_id) for job in members)
                amounts = tuple(
                    map(sum, zip(*(vector(job.amounts) for job in members), strict=True))
                )
                found.append(Victim(order, amounts, tuple(sorted(members)), leaf, leaf))
        return found


def _lacks(amounts: Vector) -> bool:
    return max(amounts) > 0


def _above_up_to(leaf: Node, top: Node) -> bool:
    """Whether every tenant from the leaf up to the top one is above its share now."""
    node: Node | None = leaf
    while node is not None and node.above_share:
        if node is top:
            return True
        node = node.parent
    return False


def _leaves_above(top: Node) -> Iterator[Node]:
    """Leaves that are above their share, as are all their ancestors up to the top one."""
    stack = [top]
    while stack:
        node = stack.pop()
        if not node.children:
            yield node
        stack += [child for child in node.children.values() if child.above_share]
