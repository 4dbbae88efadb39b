"""A lane of the funnel: queues of some orgs, one connection, one batch in flight.

Owns: fairness between its orgs, bounds on what waits, how long a batch waits for company, retries,
and keeping a command that cannot be decided away from its neighbours.
Must not: know what a command means (batch and core do), or which orgs come to it (funnel does).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpucredits.service.batch import Job, Result, commit
from gpucredits.service.errors import Busy, Closing
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import Conflict, Unavailable
from gpucredits.store.lane import close_lane, open_lane
from gpucredits.store.shelf import Shelf

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 4
CONNECT_TIMEOUT_S = 5.0
WAIT_MAX_S = 10.0
BUSY_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Bounds of one lane, in commands or heartbeats.

    A batch that follows another at once waits up to ``linger_s`` for ``linger_below``: large
    batches cost less for each of their commands. After a pause nothing waits for company.
    """

    batch_max: int
    turn_max: int  # of one org before it is another's turn
    org_batch_max: int = 1_000_000  # of one org in one batch: all that others wait for behind it
    org_waiting_max: int
    linger_s: float = 0.0
    linger_below: int = 0


@dataclass(slots=True, eq=False)
class OrgQueue:
    """What waits for one org, and how many commands or heartbeats that is."""

    jobs: deque[Job] = field(default_factory=deque)
    waiting: int = 0


class Lane:
    """Carries out what is put in, in batches, orgs in turn."""

    def __init__(self, pool: Pool, terms: Terms, shelf: Shelf) -> None:
        self.pool = pool
        self.shelf = shelf
        self.terms = terms
        self.queues: dict[int, OrgQueue] = {}
        self.turns: deque[int] = deque()  # orgs with something waiting, next one first
        self.waiting = 0
        self.connection: Connection | None = None
        self.is_closing = False
        self._wake = asyncio.Event()
        self._wake_at = 1  # how many must wait before the lane is woken
        self._ended_at = 0.0  # when the last batch was answered

    def put(self, job: Job) -> None:
        """Let a job wait; Busy when its org has too much waiting."""
        size = job.size
        self.ensure_room(job.org_id, size)
        queue = self.queues.get(job.org_id)
        if queue is None:
            queue = OrgQueue()
        if not queue.jobs:
            self.queues[job.org_id] = queue
            self.turns.append(job.org_id)
        queue.jobs.append(job)
        queue.waiting += size
        self.waiting += size
        if self.waiting >= self._wake_at:
            self._wake.set()

    def ensure_room(self, org_id: int, size: int) -> None:
        """Busy when so much more of an org cannot wait now."""
        if self.is_closing:
            raise Closing
        queue = self.queues.get(org_id)
        waiting = 0 if queue is None else queue.waiting
        if waiting + size > self.terms.org_waiting_max:
            raise Busy(BUSY_RETRY_S)

    def take(self) -> list[Job]:
        """The next batch, orgs in turn; an org that has had its part waits for the next one."""
        jobs: list[Job] = []
        terms, turns, room = self.terms, self.turns, self.terms.batch_max
        left: dict[int, int] = {}
        sated: list[int] = []
        while turns and room > 0:
            org_id = turns.popleft()
            queue = self.queues[org_id]
            part = left.get(org_id, terms.org_batch_max)
            share = min(terms.turn_max, room, part)
            while queue.jobs and share > 0:
                job = queue.jobs.popleft()
                size = job.size
                queue.waiting -= size
                share -= size
                room -= size
                part -= size
                jobs.append(job)
            left[org_id] = part
            if not queue.jobs:
                del self.queues[org_id]
            elif part > 0:
                turns.append(org_id)
            else:
                sated.append(org_id)
        turns.extend(sated)
        self.waiting -= terms.batch_max - room
        return self._still_wanted(jobs)

    async def run(self) -> None:
        """Carry out batches until told to close and nothing waits."""
        try:
            while True:
                await self._wait()
                jobs = self.take()
                if jobs:
                    await self.serve(jobs)
                    self._ended_at = asyncio.get_running_loop().time()
                elif self.is_closing and not self.queues:
                    return
        finally:
            await self._disconnect()

    def close(self) -> None:
        """Take no more; ``run`` ends when what waits is done."""
        self.is_closing = True
        self._wake.set()

    async def serve(self, jobs: Sequence[Job]) -> None:
        """Carry out a batch and answer its callers, whatever happens."""
        try:
            results = await self._commit(jobs)
        except (Unavailable, Conflict) as error:
            await self._disconnect()
            reported = error if isinstance(error, Unavailable) else Unavailable(str(error))
            for job in jobs:
                job.fail(reported)
        except Exception as error:  # noqa: BLE001  # a guard: every caller must be answered
            await self._serve_apart(jobs, error)
        else:
            for job, result in zip(jobs, results, strict=True):
                job.deliver(result)

    async def _serve_apart(self, jobs: Sequence[Job], error: Exception) -> None:
        """Something in a batch cannot be decided: find it by carrying out everything singly."""
        parts = jobs[0].split() if len(jobs) == 1 else jobs
        if len(parts) == 1:
            logger.error("a command of org %d could not be decided", jobs[0].org_id, exc_info=error)
            parts[0].fail(error)
            return
        for part in parts:
            await self.serve([part])

    async def _commit(self, jobs: Sequence[Job]) -> list[Result]:
        """Commit a batch; when others were in the way, try again, a bounded number of times."""
        attempt = 1
        while True:
            try:
                return await commit(await self._connected(), jobs, self.shelf)
            except Conflict:
                if attempt >= ATTEMPTS_MAX:
                    raise
            # Jitter only keeps two rivals apart; nothing depends on its quality.
            await asyncio.sleep(0.002 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311
            attempt += 1

    async def _wait(self) -> None:
        """Until something waits, and while batches follow each other, until enough does."""
        if not self.turns:
            await self._until_waiting(1)
        terms, loop = self.terms, asyncio.get_running_loop()
        if self.waiting >= terms.linger_below or loop.time() - self._ended_at > terms.linger_s:
            return
        timer = loop.call_later(terms.linger_s, self._wake.set)
        await self._until_waiting(terms.linger_below)
        timer.cancel()

    async def _until_waiting(self, least: int) -> None:
        self._wake.clear()
        if self.is_closing:
            return
        self._wake_at = least
        await self._wake.wait()
        self._wake_at = 1

    def _still_wanted(self, jobs: list[Job]) -> list[Job]:
        """Leave out jobs whose caller is gone, and answer those that have waited too long."""
        oldest = asyncio.get_running_loop().time() - WAIT_MAX_S
        wanted = []
        for job in jobs:
            if job.is_abandoned:
                continue
            if job.queued_at < oldest:
                job.fail(Busy(BUSY_RETRY_S))
            else:
                wanted.append(job)
        return wanted

    async def _connected(self) -> Connection:
        """The lane's connection, a new one if there is none."""
        connection = self.connection
        if connection is None:
            connection = await open_lane(self.pool, timeout_s=CONNECT_TIMEOUT_S)
            self.connection = connection
        return connection

    async def _disconnect(self) -> None:
        """Let go of the connection, whatever state it is in."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await close_lane(self.pool, connection)
