"""Room for work that waits: when capacity comes back by itself, and whose work could make room.

Owns: expected ends, start estimates, the guard of the queue's head, and the choice of running work
to stop for one unit that waits: the least important and youngest of tenants above their share.
Must not: decide who is next, stop anything, or take from a tenant at or below its share, except
what is overdue: work that overtook somebody on a promised end, and has outstayed it, makes room for
the queue's head.

A job whose end is unknown, or has passed without it ending, is taken to run for ever; but one that
overtook others, and is overdue, can be stopped for the head and is taken to end after the grace.

Where the paths of the waiting and the running tenant part, the one must stay within its share with
the unit and the other be above its own. So a swap never turns the tables, and what was preempted
can never preempt back.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from operator import add, attrgetter, sub
from typing import Final, NamedTuple

from gpucredits.core.fairshare.filling import Vector
from gpucredits.core.fairshare.snapshot import PoolSnapshot, RunningJob
from gpucredits.core.fairshare.tree import Node, Tree, WorkUnit

CANDIDATES_MAX: Final = 1_000  # how much work that would not help is passed over for one unit


Candidate = tuple[int, int, str, RunningJob]
"""Priority, start counted backwards, id and job: the least important and youngest sorts first."""

_expected_end = attrgetter("expected_end")


def fits(need: Vector, room: Vector) -> bool:
    """Whether there is room for every resource."""
    for amount, space in zip(need, room, strict=True):  # noqa: SIM110  # twice as fast as all()
        if amount > space and amount:
            return False
    return True


class Horizon:
    """Ends of running jobs in order, found only as far as somebody looks."""

    def __init__(self, snapshot: PoolSnapshot, tree: Tree, stopping: list[RunningJob]) -> None:
        self.now = snapshot.now
        self.stopped = {job.job_id for job in stopping}
        self.added: list[tuple[int, int, Vector]] = []
        self.overdue: list[tuple[str, Vector]] = []
        self.overdue_until = snapshot.now + snapshot.policy.grace_ms * 1_000
        self._running = snapshot.running
        self._tree = tree
        self._shift = len(snapshot.running).bit_length()
        self._ends: list[int] | None = None
        self._seen: list[tuple[int, RunningJob]] = []

    def add(self, end: int, amounts: Vector) -> None:
        """Note capacity that will come back and that no running job holds."""
        self.added.append((end, len(self.added), amounts))

    def end(self, position: int) -> tuple[int, RunningJob] | None:
        """When the n-th job to end will end, or None when there are no more."""
        if self._ends is None:
            now, shift = self.now, self._shift
            # One integer holds the instant and the index: integers make the fastest heap.
            self._ends = [
                end << shift | index
                for index, end in enumerate(map(_expected_end, self._running))
                if end is not None and end > now
            ]
            heapify(self._ends)
        while len(self._seen) <= position:
            if not self._ends:
                return None
            packed = heappop(self._ends)
            job = self._running[packed & ((1 << self._shift) - 1)]
            self._seen.append((packed >> self._shift, job))
        return self._seen[position]

    def released(self, job: RunningJob) -> Vector | None:
        """What a job gives back at its end, unless it is stopped before."""
        return None if job.job_id in self.stopped else self._tree.vector(job.amounts)


class Walk:
    """A look ahead from now: time passes, jobs end, waiting work takes their place."""

    def __init__(self, horizon: Horizon, free: Vector, coming: tuple[int, Vector]) -> None:
        self.time = horizon.now
        self.free = free
        self._horizon = horizon
        self._position = 0
        self._ends = [*horizon.added, (coming[0], -1, coming[1])]
        self._ends += [
            (horizon.overdue_until, -2, amounts)
            for job_id, amounts in horizon.overdue
            if job_id not in horizon.stopped
        ]
        heapify(self._ends)
        self._started = len(self._ends)

    def wait_for(self, need: Vector) -> int | None:
        """Let time pass until the need fits; None when it never does."""
        while not fits(need, self.free):
            if not self._step():
                return None
        return self.time

    def start(self, need: Vector, duration_ms: int | None) -> None:
        """Take capacity now, and give it back when the work ends, if that is known."""
        self.free = tuple(map(sub, self.free, need))
        if duration_ms is not None:
            self._started += 1
            heappush(self._ends, (self.time + duration_ms * 1_000, self._started, need))

    def _step(self) -> bool:
        """Go to the next instant at which something ends, and free all that ends then."""
        horizon = self._horizon
        end = horizon.end(self._position)
        if end is None and not self._ends:
            return False
        instants = [event[0] for event in (end, *self._ends[:1]) if event is not None]
        self.time = max(self.time, min(instants))
        while end is not None and end[0] <= self.time:
            released = horizon.released(end[1])
            if released is not None:
                self.free = tuple(map(add, self.free, released))
            self._position += 1
            end = horizon.end(self._position)
        while self._ends and self._ends[0][0] <= self.time:
            self.free = tuple(map(add, self.free, heappop(self._ends)[2]))
        return True


class HeadGuard:
    """What the head of the queue was promised, and which work may still overtake it.

    ``starts_at`` is the head's start estimate and ``spare`` what will be free beside it then.
    """

    def __init__(self, walk: Walk, need: Vector) -> None:
        self.starts_at = walk.wait_for(need)
        self.spare: Vector = tuple(map(sub, walk.free, need))

    def admits(self, taken: Vector, ends_at: int | None) -> bool:
        """Let work overtake that ends by the head's start or fits beside it; note what it takes."""
        if self.starts_at is None or (ends_at is not None and ends_at <= self.starts_at):
            return True
        if not fits(taken, self.spare):
            return False
        self.spare = tuple(map(sub, self.spare, taken))
        return True


class Victim(NamedTuple):
    """What stops together, one job or a gang, and the ancestor of it that is above its share."""

    candidate: Candidate
    amounts: Vector
    jobs: tuple[RunningJob, ...]
    leaf: Node
    above: Node
    overdue: bool = False


class Victims:
    """Work that may be stopped in one cycle, looked up only when somebody needs room."""

    def __init__(self, snapshot: PoolSnapshot, tree: Tree, stopped: set[str]) -> None:
        self._tree = tree
        self._running = snapshot.running
        self._stopped = stopped  # jobs that stop already; whoever promises room adds to them
        self._latest_start = snapshot.now - snapshot.policy.min_runtime_ms * 1_000
        self._left = snapshot.policy.preemptions_max
        self._attempts = snapshot.policy.preemptions_max
        self._heaps: dict[Node, list[Candidate]] | None = None
        self._gangs: dict[tuple[str, str], tuple[RunningJob, ...]] = {}
        self._fruitless: set[tuple[str, Vector]] = set()
        self.overdue = self._find_overdue(snapshot.now) if snapshot.policy.preemption else []

    @property
    def are_spent(self) -> bool:
        """Whether this cycle's bounds leave no more to try."""
        return self._attempts <= 0 or self._left <= 0

    def choose(self, unit: WorkUnit, leaf: Node, lacking: Vector) -> list[Victim]:
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

    def choose_overdue(self, lacking: Vector) -> list[Victim]:
        """Overdue work to stop so that the lacking amounts come free; empty when it is too little.

        What is chosen is taken from its tenants at once, as in ``choose``.
        """
        if self.are_spent:
            return []
        chosen: list[Victim] = []
        for victim in self.overdue:
            if not _lacks(lacking):
                break
            helps = any(want > 0 < gain for want, gain in zip(lacking, victim.amounts, strict=True))
            if helps and victim.candidate[2] not in self._stopped:
                lacking = tuple(map(sub, lacking, victim.amounts))
                chosen.append(victim)
        needed: list[Victim] = []
        for victim in reversed(chosen):
            without = tuple(map(add, lacking, victim.amounts))
            if _lacks(without):
                needed.append(victim)
            else:
                lacking = without
        number = sum(len(victim.jobs) for victim in needed)
        if _lacks(lacking) or number > self._left:
            return []
        self._left -= number
        for victim in needed:
            for node in self._tree.lineage(victim.leaf):
                node.let_go(victim.amounts)
        return needed[::-1]

    def _find_overdue(self, now: int) -> list[Victim]:
        """Work that overtook others and has outstayed its time, in the order in which it stops."""
        late = [
            job
            for job in self._tree.promised
            if job.promised_end is not None and job.promised_end <= now and job.preemptible
        ]
        gangs: dict[tuple[str, str], list[RunningJob]] = {}
        for job in late:
            if job.gang:
                gangs.setdefault((job.tenant, job.gang), []).append(job)
        if gangs:  # a gang stops whole or not at all
            for job in self._running:
                if job.stopping_at is None and job not in gangs.get((job.tenant, job.gang), [job]):
                    del gangs[job.tenant, job.gang]
        groups = [[job] for job in late if not job.gang] + list(gangs.values())
        found: list[Victim] = []
        for jobs in groups:
            first = max((job.priority, -job.started_at, job.job_id, job) for job in jobs)
            vectors = [self._tree.vector(job.amounts) for job in jobs]
            amounts = tuple(map(sum, zip(*vectors, strict=True)))
            leaf = self._tree.leaf(first[3].tenant)
            org = self._tree.lineage(leaf)[2]
            found.append(Victim(first, amounts, tuple(sorted(jobs)), leaf, org, overdue=True))
        return sorted(found, key=_order)

    def spare(self, chosen: list[Victim]) -> None:
        """Let chosen work run on after all."""
        for victim in chosen:
            self._give_back(victim)
            self._left += len(victim.jobs)

    def _collect(self, unit: WorkUnit, leaf: Node, lacking: Vector) -> tuple[list[Victim], Vector]:
        """Take victims in order until nothing lacks, none is left, or a bound is met."""
        heaps = self._candidates()
        chosen: list[Victim] = []
        useless: list[Victim] = []
        left = self._left
        frontier = [
            (heaps[victim_leaf][0], victim_leaf, top)
            for victim_leaf, top in self._tenants_above(leaf, unit.need)
        ]
        heapify(frontier)
        while frontier and left >= 0 and len(useless) < CANDIDATES_MAX and _lacks(lacking):
            candidate, victim_leaf, top = heappop(frontier)
            heap = heaps[victim_leaf]
            outranks = self._tree.priority_counts(top) and candidate[0] > -unit.rank
            if outranks or not _above_up_to(victim_leaf, top):
                continue
            heappop(heap)
            victim = self._victim(candidate, victim_leaf, top)
            if candidate[2] in self._stopped:
                pass  # it was overdue, and makes room for somebody else
            elif any(want > 0 < gain for want, gain in zip(lacking, victim.amounts, strict=True)):
                left -= len(victim.jobs)
                for node in self._tree.lineage(victim_leaf):
                    node.let_go(victim.amounts)
                lacking = tuple(map(sub, lacking, victim.amounts))
                chosen.append(victim)
            else:
                useless.append(victim)
            if heap:
                heappush(frontier, (heap[0], victim_leaf, top))
        for victim in useless:
            heappush(heaps[victim.leaf], victim.candidate)
        return chosen, lacking

    def _victim(self, candidate: Candidate, leaf: Node, top: Node) -> Victim:
        job = candidate[3]
        jobs = self._gangs[job.tenant, job.gang] if job.gang else (job,)
        vectors = [self._tree.vector(member.amounts) for member in jobs]
        return Victim(candidate, tuple(map(sum, zip(*vectors, strict=True))), jobs, leaf, top)

    def _needed(self, chosen: list[Victim], lacking: Vector) -> list[Victim]:
        """Spare the victims that turn out not to be needed, the most important first."""
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
        heappush(self._candidates()[victim.leaf], victim.candidate)

    def _tenants_above(self, leaf: Node, need: Vector) -> Iterator[tuple[Node, Node]]:
        """Leaves above their share, each with the ancestor that the unit's tenant competes with.

        A tenant competes where it stays within its share with the unit, as long as its tenants
        further down are still below theirs.
        """
        lineage = user, project, org = self._tree.lineage(leaf)
        competes = [node.stays_within_share(need) and node.weight > 0 for node in lineage]
        if not user.below_share:
            return
        competes[2] = competes[2] and project.below_share
        for victim_leaf, heap in self._candidates().items():
            if not heap or not victim_leaf.above_share:
                continue
            _, its_project, its_org = self._tree.lineage(victim_leaf)
            if its_org is not org:
                if competes[2] and its_org.above_share and its_project.above_share:
                    yield victim_leaf, its_org
            elif its_project is not project:
                if competes[1] and its_project.above_share:
                    yield victim_leaf, its_project
            elif victim_leaf is not user and competes[0]:
                yield victim_leaf, victim_leaf

    def _candidates(self) -> dict[Node, list[Candidate]]:
        """Stoppable work of every leaf that is above its share, as heaps."""
        if self._heaps is None:
            leaves = {path: leaf for path, leaf in self._tree.leaves.items() if leaf.above_share}
            by_tenant: dict[str, list[RunningJob]] = {path: [] for path in leaves}
            for job in self._running:
                tenant = job[1]
                if tenant in by_tenant and job.stopping_at is None:
                    by_tenant[tenant].append(job)
            self._heaps = {
                leaves[path]: self._stoppable(jobs) for path, jobs in sorted(by_tenant.items())
            }
            for heap in self._heaps.values():
                heapify(heap)
        return self._heaps

    def _stoppable(self, jobs: list[RunningJob]) -> list[Candidate]:
        latest = self._latest_start
        found = [
            (job.priority, -job.started_at, job.job_id, job)
            for job in jobs
            if job.preemptible and job.started_at <= latest and not job.gang
        ]
        gangs: dict[tuple[str, str], list[RunningJob]] = {}
        for job in jobs:
            if job.gang:
                gangs.setdefault((job.tenant, job.gang), []).append(job)
        for key, members in gangs.items():
            if all(job.preemptible and job.started_at <= latest for job in members):
                self._gangs[key] = tuple(sorted(members))
                found.append(max((j.priority, -j.started_at, j.job_id, j) for j in members))
        return found


def _order(victim: Victim) -> tuple[int, int, str]:
    return victim.candidate[:3]


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
