"""Group commit: callers wait in queues, lanes carry them out in batches.

Owns: fairness between orgs, bounds on what waits, one batch in flight for each lane, retries, and
keeping a command that cannot be decided away from its neighbours.
Must not: know what a command means (batch and core do).
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

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelOptions:
    """Bounds of the funnel."""

    lanes: int = 4
    batch_max: int = 1_000  # heartbeats in a batch
    admissions_max: int = 64  # commands in a batch that go ahead of heartbeats
    org_share_max: int = 100  # heartbeats of one org before it is another's turn
    linger_s: float = 0.002  # how long few heartbeats wait for company
    linger_below: int = 64
    org_beats_max: int = 20_000  # waiting heartbeats of one org
    org_commands_max: int = 2_000  # waiting commands of one org
    wait_max_s: float = 10.0
    attempts_max: int = 4
    connect_timeout_s: float = 5.0


DEFAULTS = FunnelOptions()


@dataclass(slots=True, eq=False)
class OrgQueue:
    """What waits for one org: commands, and behind them heartbeats."""

    commands: deque[Job] = field(default_factory=deque)
    beats: deque[Job] = field(default_factory=deque)
    commands_waiting: int = 0
    beats_waiting: int = 0


class Lane:
    """The queues of the orgs that hash to it, and one connection with one batch in flight."""

    def __init__(self, pool: Pool, options: FunnelOptions) -> None:
        self.pool = pool
        self.options = options
        self.queues: dict[int, OrgQueue] = {}
        self.command_turns: deque[int] = deque()  # orgs with commands waiting, next one first
        self.beat_turns: deque[int] = deque()
        self.beats_waiting = 0
        self.connection: Connection | None = None
        self.is_closing = False
        self.went_alone = False  # whether the last batch held commands only
        self._arrival = asyncio.Event()

    def put(self, job: Job, *, ahead: bool) -> None:
        """Let a job wait, commands ahead of heartbeats; Busy when its org has too much waiting."""
        if self.is_closing:
            raise Closing
        queue = self.queues.get(job.org_id) or OrgQueue()
        self._require_room(queue, job.size, ahead=ahead)
        self.queues[job.org_id] = queue
        job.queued_at = asyncio.get_running_loop().time()
        if ahead:
            if not queue.commands:
                self.command_turns.append(job.org_id)
            queue.commands.append(job)
            queue.commands_waiting += job.size
        else:
            if not queue.beats:
                self.beat_turns.append(job.org_id)
            queue.beats.append(job)
            queue.beats_waiting += job.size
            self.beats_waiting += job.size
        self._arrival.set()

    def _require_room(self, queue: OrgQueue, size: int, *, ahead: bool) -> None:
        waiting = queue.commands_waiting if ahead else queue.beats_waiting
        most = self.options.org_commands_max if ahead else self.options.org_beats_max
        if waiting + size > most:
            raise Busy(1.0)

    def take(self) -> list[Job]:
        """The next batch: commands first, then heartbeats, orgs in turn.

        Commands go alone, so that none waits for the heartbeats of its own batch; but not twice in
        a row while heartbeats wait.
        """
        jobs: list[Job] = []
        room = self.options.admissions_max
        while self.command_turns and room > 0:
            org_id = self.command_turns.popleft()
            queue = self.queues[org_id]
            job = queue.commands.popleft()
            queue.commands_waiting -= job.size
            room -= job.size
            jobs.append(job)
            if queue.commands:
                self.command_turns.append(org_id)
            else:
                self._forget_if_empty(org_id, queue)
        if jobs and not self.went_alone:
            self.went_alone = True
            return self._still_wanted(jobs)
        self.went_alone = False
        room = self.options.batch_max - sum(job.size for job in jobs)
        while self.beat_turns and room > 0:
            org_id = self.beat_turns.popleft()
            queue = self.queues[org_id]
            share = min(self.options.org_share_max, room)
            while queue.beats and share > 0:
                job = queue.beats.popleft()
                queue.beats_waiting -= job.size
                self.beats_waiting -= job.size
                share -= job.size
                room -= job.size
                jobs.append(job)
            if queue.beats:
                self.beat_turns.append(org_id)
            else:
                self._forget_if_empty(org_id, queue)
        return self._still_wanted(jobs)

    async def run(self) -> None:
        """Carry out batches until told to close and nothing waits."""
        try:
            while True:
                await self._wait()
                jobs = self.take()
                if jobs:
                    await self.serve(jobs)
                elif self.is_closing and not self.queues:
                    return
        finally:
            await self._disconnect()

    def close(self) -> None:
        """Take no more; ``run`` ends when what waits is done."""
        self.is_closing = True
        self._arrival.set()

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
                return await commit(await self._connected(), jobs)
            except Conflict:
                if attempt >= self.options.attempts_max:
                    raise
            # Jitter only keeps two rivals apart; nothing depends on its quality.
            await asyncio.sleep(0.002 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311
            attempt += 1

    async def _wait(self) -> None:
        """Until something waits; a few heartbeats alone wait a little for company."""
        if not self.command_turns and not self.beat_turns:
            self._arrival.clear()
            if self.is_closing:
                return
            await self._arrival.wait()
        options = self.options
        if (
            not self.command_turns
            and self.beats_waiting < options.linger_below
            and not self.is_closing
        ):
            await asyncio.sleep(options.linger_s)

    def _still_wanted(self, jobs: list[Job]) -> list[Job]:
        """Leave out jobs whose caller is gone, and answer those that have waited too long."""
        oldest = asyncio.get_running_loop().time() - self.options.wait_max_s
        wanted = []
        for job in jobs:
            if job.is_abandoned:
                continue
            if job.queued_at < oldest:
                job.fail(Busy(1.0))
            else:
                wanted.append(job)
        return wanted

    def _forget_if_empty(self, org_id: int, queue: OrgQueue) -> None:
        if not queue.commands and not queue.beats:
            del self.queues[org_id]

    async def _connected(self) -> Connection:
        """The lane's connection, a new one if there is none."""
        connection = self.connection
        if connection is None:
            connection = await open_lane(self.pool, timeout_s=self.options.connect_timeout_s)
            self.connection = connection
        return connection

    async def _disconnect(self) -> None:
        """Let go of the connection, whatever state it is in."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await close_lane(self.pool, connection)


class Funnel:
    """All lanes. Start it, put jobs in, stop it: what waits is carried out first."""

    def __init__(self, pool: Pool, options: FunnelOptions = DEFAULTS) -> None:
        self.options = options
        self.lanes = [Lane(pool, options) for _ in range(options.lanes)]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to carry out what is put in."""
        self._tasks = [
            asyncio.create_task(lane.run(), name=f"lane-{number}")
            for number, lane in enumerate(self.lanes)
        ]

    async def stop(self) -> None:
        """Take no more, finish what waits, let the connections go."""
        for lane in self.lanes:
            lane.close()
        await asyncio.gather(*self._tasks)
        self._tasks = []

    def put(self, job: Job, *, ahead: bool = True) -> None:
        """Let a job wait in its org's lane; raises Busy."""
        self.lanes[job.org_id % len(self.lanes)].put(job, ahead=ahead)
