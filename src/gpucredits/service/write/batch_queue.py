"""What waits to be written, org by org, and when a batch of it begins.

Owns: the order of orgs and of the jobs of each org, the bounds on waiting jobs, and the start of
batches. A batch begins at once while fewer than ``at_once`` are at work. Jobs that arrive meanwhile
form the next batch, so batches grow with the load, and no job waits for others to arrive. Where as
much waits as a batch at work holds, another begins beside it (``beside``): the server decides while
the database writes, and no batch is smaller for it. A batch
does not count as at work when one org alone fills it, it has met a lock or it takes long: such a
batch holds nobody up.
Must not: retry (batch_worker does), or know what a command means (core does). This module is
compiled: every heartbeat passes through here.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from gpucredits.core.heartbeat import Beat
from gpucredits.service.write.batch import Job
from gpucredits.service.write.batch_worker import BatchWorker
from gpucredits.service.write.errors import BUSY_RETRY_S, Busy, Closing
from gpucredits.service.write.heartbeats import BEATS_DECIDED_AT_ONCE, BeatCall, BeatJob

OrgBeat = tuple[int, Beat]  # an org's number, and what one of its leases reports


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Bounds of one queue, in commands or heartbeats."""

    at_once: int  # batches at work
    beside: int = 0  # more of them, each as large as the smallest that is at work
    batch_max: int
    org_batch_max: int  # of one org in one batch while other orgs wait
    org_waiting_max: int
    long_s: float = math.inf  # a batch that takes longer no longer counts as at work
    workers: int = 4  # batches under way in all, each with a connection


@dataclass(slots=True, eq=False)
class OrgQueue:
    """The jobs that wait for one org, and how many commands or heartbeats they hold."""

    jobs: deque[Job] = field(default_factory=deque)
    waiting: int = 0
    is_under_way: bool = False  # the org is in a batch that has not ended

    def take(self, jobs: list[Job], share: int) -> int:
        """Move jobs to a batch until they fill a share of it; how much they hold."""
        taken = 0
        while self.jobs and taken < share:
            job = self.jobs.popleft()
            taken += job.size
            jobs.append(job)
        self.waiting -= taken
        return taken


class BatchQueue:
    """Jobs that wait, and the workers that carry them out in batches.

    An org is in one batch at a time, so its jobs are carried out in the order of their arrival.
    """

    def __init__(self, limits: BatchLimits, workers: Sequence[BatchWorker]) -> None:
        self.limits = limits
        self.queues: dict[int, OrgQueue] = {}  # of orgs with jobs waiting or under way
        self.turns: deque[int] = deque()  # orgs whose jobs can be taken, the next one first
        self.idle: list[BatchWorker] = list(workers)
        self._busy: list[BatchWorker] = []
        self.is_closing = False
        self.turned_away_total = 0  # commands and heartbeats for which there was no room
        self.turned_away_at = float("-inf")
        self._is_begin_scheduled = False
        self._look_again: asyncio.TimerHandle | None = None
        self._batches: set[asyncio.Task[None]] = set()

    def put(self, job: Job) -> None:
        """Add a job; raises Busy when too much waits for its org, and Closing after ``stop``."""
        self.ensure_room({job.org_id: job.size})
        self._append(job)
        self._schedule_begin()

    def put_beats(self, beats: Sequence[OrgBeat], call: BeatCall, now: float) -> None:
        """Add heartbeats to the waiting ones of their orgs; raises Closing after ``stop``.

        A heartbeat of an org for which too much waits is answered Busy in its place.
        """
        if self.is_closing:
            raise Closing
        queues, waiting_max = self.queues, self.limits.org_waiting_max
        for place, (org_id, beat) in enumerate(beats):
            queue = queues.get(org_id)
            if queue is not None and queue.waiting >= waiting_max:
                self._note_no_room(1)
                call.answer(place, Busy(BUSY_RETRY_S))
                continue
            last = queue.jobs[-1] if queue is not None and queue.jobs else None
            if (
                queue is not None
                and type(last) is BeatJob
                and len(last.beats) < BEATS_DECIDED_AT_ONCE
            ):
                last.add(beat, call, place)
                queue.waiting += 1
            else:
                self._append(BeatJob(org_id, [beat], [call], [place], now))
        self._schedule_begin()

    def ensure_room(self, sizes: Mapping[int, int]) -> None:
        """Raise Busy when not all of so many commands, by org, can wait now."""
        if self.is_closing:
            raise Closing
        for org_id, size in sizes.items():
            queue = self.queues.get(org_id)
            waiting = 0 if queue is None else queue.waiting
            if waiting + size > self.limits.org_waiting_max:
                self._note_no_room(size)
                raise Busy(BUSY_RETRY_S)

    def take(self) -> list[Job]:
        """The jobs of the next batch, orgs in turn; what an org has left waits for the one after.

        An org that waits alone fills the batch. A job is taken whole, so a batch may exceed its
        bounds by a part of one job.
        """
        jobs: list[Job] = []
        room = self.limits.batch_max
        org_max = self.limits.batch_max if len(self.turns) == 1 else self.limits.org_batch_max
        while self.turns and room > 0:
            queue = self.queues[self.turns.popleft()]
            queue.is_under_way = True
            room -= queue.take(jobs, min(room, org_max))
        return jobs

    def give_back(self, jobs: Sequence[Job]) -> None:
        """Let the orgs of a batch that has ended take their turns again."""
        for org_id in {job.org_id for job in jobs}:
            queue = self.queues[org_id]
            queue.is_under_way = False
            if queue.jobs:
                self.turns.append(org_id)
            else:
                del self.queues[org_id]

    @property
    def waiting(self) -> int:
        """How many commands or heartbeats wait."""
        return sum([queue.waiting for queue in self.queues.values()])

    def longest_wait(self, now: float) -> float:
        """How many seconds the oldest job has waited for its batch, or a batch for its end.

        A batch that has met a lock waits for somebody else, and holds nothing up.
        """
        waits = [now - queue.jobs[0].queued_at for queue in self.queues.values() if queue.jobs]
        waits += [now - worker.began_at for worker in self._busy if not worker.has_met_lock]
        return max(waits, default=0.0)

    async def stop(self) -> None:
        """Accept no more jobs, carry out those that wait, and close the connections."""
        self.is_closing = True
        while self.queues:
            self.begin()
            await asyncio.wait(self._batches)
        if self._look_again is not None:
            self._look_again.cancel()
        for worker in self.idle:
            await worker.disconnect()

    def _append(self, job: Job) -> None:
        queue = self.queues.get(job.org_id)
        if queue is None:
            queue = self.queues[job.org_id] = OrgQueue()
        if not queue.jobs and not queue.is_under_way:
            self.turns.append(job.org_id)
        queue.jobs.append(job)
        queue.waiting += job.size

    def _note_no_room(self, size: int) -> None:
        self.turned_away_total += size
        self.turned_away_at = time.monotonic()

    def _schedule_begin(self) -> None:
        """Begin batches after this round of the event loop, with all jobs that arrive in it."""
        if self.idle and not self._is_begin_scheduled:
            self._is_begin_scheduled = True
            asyncio.get_running_loop().call_soon(self.begin)

    def begin(self) -> None:
        """Begin as many batches as there are jobs and free workers for."""
        self._is_begin_scheduled = False
        while self.turns and self.idle and self._may_begin():
            worker, jobs = self.idle.pop(), self.take()
            self._busy.append(worker)
            worker.began_at = asyncio.get_running_loop().time()
            worker.size = sum([job.size for job in jobs])
            worker.is_apart = self._is_filled_by_one_org(jobs)
            batch = asyncio.get_running_loop().create_task(worker.serve(jobs, self.begin))
            self._batches.add(batch)
            batch.add_done_callback(partial(self._end, worker, jobs))
        if self.turns and self.idle and self._look_again is None and self.limits.long_s < math.inf:
            loop = asyncio.get_running_loop()
            self._look_again = loop.call_later(self.limits.long_s, self._begin_beside)

    def _begin_beside(self) -> None:
        """Begin a batch beside those that take long."""
        self._look_again = None
        self.begin()

    def _is_filled_by_one_org(self, jobs: list[Job]) -> bool:
        """Whether one org has more in a batch than it may have while others wait."""
        limits = self.limits
        if limits.org_batch_max >= limits.batch_max or jobs[0].org_id != jobs[-1].org_id:
            return False
        return sum([job.size for job in jobs]) > limits.org_batch_max

    def _may_begin(self) -> bool:
        """Whether a batch may begin beside those that are at work."""
        sizes, limits = self._at_work(), self.limits
        if len(sizes) < limits.at_once:
            return True
        if len(sizes) >= limits.at_once + limits.beside:
            return False
        wanted = min(*sizes, limits.batch_max)
        for org_id in self.turns:
            wanted -= min(self.queues[org_id].waiting, limits.org_batch_max)
            if wanted <= 0:
                return True
        return False

    def _at_work(self) -> list[int]:
        """How much the batches hold that are under way and could hold others up."""
        began_after = asyncio.get_running_loop().time() - self.limits.long_s
        return [
            each.size
            for each in self._busy
            if not (each.has_met_lock or each.is_apart) and each.began_at >= began_after
        ]

    def _end(self, worker: BatchWorker, jobs: list[Job], batch: asyncio.Task[None]) -> None:
        """Begin the next batch when one has ended."""
        self._batches.discard(batch)
        self._busy.remove(worker)
        self.idle.append(worker)
        self.give_back(jobs)
        self.begin()
