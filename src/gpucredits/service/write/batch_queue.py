"""What waits to be written, org by org, and when a batch of it begins.

Owns: the order of orgs and of the jobs of each org, the bounds on waiting jobs, and the start of
batches. A batch begins at once while fewer than ``at_once`` are at work. Jobs that arrive meanwhile
form the next batch, so batches grow with the load, and no job waits for others to arrive.
Must not: retry (batch_worker does), or know what a command means (core does). This module is
compiled: every heartbeat passes through here.
"""

from __future__ import annotations

import asyncio
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

    at_once: int  # batches at work; a batch that has met a lock no longer counts
    batch_max: int
    org_batch_max: int  # of one org in one batch: other orgs wait behind no more
    org_waiting_max: int
    workers: int = 4  # batches under way in all, each with a connection


@dataclass(slots=True, eq=False)
class OrgQueue:
    """The jobs that wait for one org, and how many commands or heartbeats they hold."""

    jobs: deque[Job] = field(default_factory=deque)
    waiting: int = 0
    is_under_way: bool = False  # the org is in a batch that has not ended


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
        self._is_begin_scheduled = False
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
                raise Busy(BUSY_RETRY_S)

    def take(self) -> list[Job]:
        """The jobs of the next batch, orgs in turn; what an org has left waits for the one after.

        A job is taken whole, so a batch may exceed its bounds by a part of one job.
        """
        jobs: list[Job] = []
        room = self.limits.batch_max
        while self.turns and room > 0:
            queue = self.queues[self.turns.popleft()]
            queue.is_under_way = True
            share = min(room, self.limits.org_batch_max)
            while queue.jobs and share > 0:
                job = queue.jobs.popleft()
                size = job.size
                queue.waiting -= size
                share -= size
                room -= size
                jobs.append(job)
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
        """How many seconds the oldest waiting job has waited."""
        waits = [now - queue.jobs[0].queued_at for queue in self.queues.values() if queue.jobs]
        return max(waits, default=0.0)

    async def stop(self) -> None:
        """Accept no more jobs, carry out those that wait, and close the connections."""
        self.is_closing = True
        while self.queues:
            self.begin()
            await asyncio.wait(self._batches)
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

    def _schedule_begin(self) -> None:
        """Begin batches after this round of the event loop, with all jobs that arrive in it."""
        if self.idle and not self._is_begin_scheduled:
            self._is_begin_scheduled = True
            asyncio.get_running_loop().call_soon(self.begin)

    def begin(self) -> None:
        """Begin as many batches as there are jobs and free workers for."""
        self._is_begin_scheduled = False
        while self.turns and self.idle and self._at_work() < self.limits.at_once:
            worker, jobs = self.idle.pop(), self.take()
            self._busy.append(worker)
            batch = asyncio.get_running_loop().create_task(worker.serve(jobs, self.begin))
            self._batches.add(batch)
            batch.add_done_callback(partial(self._end, worker, jobs))

    def _at_work(self) -> int:
        """How many batches are under way that have met no lock."""
        return sum([not worker.has_met_lock for worker in self._busy])

    def _end(self, worker: BatchWorker, jobs: list[Job], batch: asyncio.Task[None]) -> None:
        """Begin the next batch when one has ended."""
        self._batches.discard(batch)
        self._busy.remove(worker)
        self.idle.append(worker)
        self.give_back(jobs)
        self.begin()
