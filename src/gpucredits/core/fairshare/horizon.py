"""When capacity comes back: expected ends, start estimates, and the guard of the queue's head.

Owns: the future of a pool as far as its jobs have told it.
Must not: decide who is next.

A job whose end is unknown, or has passed without it ending, is taken to run for ever; but one that
overtook others, and is overdue, can be stopped for the head and is taken to end after the grace.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from operator import add, attrgetter, sub

from gpucredits.core.fairshare.filling import Vector
from gpucredits.core.fairshare.snapshot import PoolSnapshot, RunningJob
from gpucredits.core.fairshare.tree import Tree

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
        """Note that capacity will come back which no running job holds."""
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
    """What the head of the queue was promised, and who may overtake it all the same.

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
