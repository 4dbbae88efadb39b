"""A lane of the funnel: what waits there is carried out in batches, several at once.

Owns: when a batch begins, and how long it waits for company.
Must not: know what a command means (batch and core do), or which jobs come to it (funnel does).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from gpucredits.service.write.batch import Job
from gpucredits.service.write.batch_queue import BatchQueue, BatchTerms, OrgBeat
from gpucredits.service.write.batch_worker import BatchWorker
from gpucredits.service.write.errors import Closing
from gpucredits.service.write.heartbeats import BeatCall
from gpucredits.service.write.progress import WriteProgress
from gpucredits.store.book.cache.book_cache import BookCache
from gpucredits.store.database.connection import Pool


class BatchLane:
    """Carries out what is put in, in batches, orgs in turn; never two batches of one org."""

    def __init__(
        self,
        pool: Pool,
        terms: BatchTerms,
        shelf: BookCache,
        progress: WriteProgress,
        *,
        at_once: int,
    ) -> None:
        self.waiting = BatchQueue(terms)
        self.is_closing = False
        self._at_once = at_once
        self._idle = [BatchWorker(pool, shelf, progress) for _ in range(at_once)]
        self._under_way: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._wake_at = 1  # how many must be ready before the lane is woken
        self._moved_at = -math.inf  # when a batch last began or ended; clocks may start at zero

    def put(self, job: Job) -> None:
        """Let a job wait; Busy when its org has too much waiting."""
        if self.is_closing:
            raise Closing
        self.waiting.put(job)
        self._wake_if_ready()

    def put_beats(self, beats: Sequence[OrgBeat], call: BeatCall) -> None:
        """Let heartbeats wait; those for which there is no room are told so in their places."""
        if self.is_closing:
            raise Closing
        self.waiting.put_beats(beats, call, asyncio.get_running_loop().time())
        self._wake_if_ready()

    def ensure_room(self, org_id: int, size: int) -> None:
        """Busy when so much more of an org cannot wait now."""
        if self.is_closing:
            raise Closing
        self.waiting.ensure_room(org_id, size)

    async def run(self) -> None:
        """Carry out batches until told to close and nothing waits."""
        try:
            while await self._can_begin():
                self._begin(self.waiting.take())
        finally:
            await asyncio.gather(*self._under_way)
            await asyncio.gather(*(carrier.disconnect() for carrier in self._idle))

    def close(self) -> None:
        """Take no more; ``run`` ends when what waits is done."""
        self.is_closing = True
        self._wake.set()

    def _begin(self, jobs: Sequence[Job]) -> None:
        """Carry out a batch beside those that are under way."""
        self._moved_at = asyncio.get_running_loop().time()
        task = asyncio.create_task(self._carry_out(self._idle.pop(), jobs))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _carry_out(self, carrier: BatchWorker, jobs: Sequence[Job]) -> None:
        try:
            await carrier.serve(jobs)
        finally:
            self._idle.append(carrier)
            self._moved_at = asyncio.get_running_loop().time()
            self.waiting.give_back({job.org_id for job in jobs})
            self._wake.set()

    async def _can_begin(self) -> bool:
        """Wait until a batch should begin; False when none will any more."""
        loop = asyncio.get_running_loop()
        while True:
            if self.is_closing and not self.waiting.queues:
                return False
            least, until = self._company()
            if self.waiting.ready and self._idle:
                if self.waiting.ready >= least or loop.time() >= until or self.is_closing:
                    return True
                timer = loop.call_at(until, self._wake.set)
                await self._woken(least)
                timer.cancel()
            else:
                await self._woken(1)

    def _company(self) -> tuple[int, float]:
        """How much should be ready before a batch begins, and until when it waits for that."""
        terms = self.waiting.terms
        if len(self._idle) < self._at_once:
            return terms.beside_below, self._moved_at + terms.beside_s
        if self.waiting.is_cut:  # these have waited for company with those that were taken
            return 1, self._moved_at
        return terms.linger_below, self._moved_at + terms.linger_s

    async def _woken(self, least: int) -> None:
        """Sleep until so much is ready and can be carried out, or a batch has ended."""
        self._wake.clear()
        self._wake_at = least
        await self._wake.wait()

    def _wake_if_ready(self) -> None:
        if self._idle and self.waiting.ready >= self._wake_at:
            self._wake.set()
