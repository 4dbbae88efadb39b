"""Carrying out batches, one at a time, over a connection that is kept; whether writes get through.

Owns: retries, the isolation of locked orgs and of commands that cannot be decided, an answer for
every caller, and what failed since the last write that was saved. Requests that failed before they
were part of a batch are heard of too: their key or org could not be looked up, or an administrative
act not be saved.
Must not: choose the jobs of a batch (batch_queue does), know what a command means (core does), try
a write of its own, or know HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Sequence
from typing import Final

from gpucredits.service.write.batch import Job, Result, commit
from gpucredits.service.write.errors import BUSY_RETRY_S, Busy
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.book.database_clock import ClockJumped
from gpucredits.store.book.save import held_by_others, is_open, open_lane
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import close_lane
from gpucredits.store.database.errors import Conflict, Locked, Unavailable

FAILURES_MIN: Final = 3  # failures in a row before writes count as broken
LOGGED_EVERY_S: Final = 10.0
# How long failures are held against the server when nobody tries to write any more. Without an
# end, a load balancer that sends no writes to a server in trouble would never send one again.
REMEMBERED_S: Final = 30.0

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 4
HELD_MAX_S = 2.5  # a batch that met a lock begins nothing for locked orgs after so long
HELD_LOOK_S = 0.05  # between two looks at whether locks were released
CONNECT_TIMEOUT_S = 5.0
WAIT_MAX_S = 10.0  # a job that has waited for longer is answered Busy


def _ignore() -> None:
    """Do nothing."""


class BatchWorker:
    """Carries out one batch after the other."""

    def __init__(self, pool: Pool, cache: BookCache, progress: WriteProgress) -> None:
        self.pool = pool
        self.cache = cache
        self.progress = progress
        self.connection: Connection | None = None
        self.has_met_lock = False
        self.is_apart = False  # others need not wait for the batch that is under way
        self.size = 0  # of the batch that is under way, in commands or heartbeats
        self._on_lock: Callable[[], None] = _ignore
        self.began_at = 0.0  # the batch that is under way

    async def serve(self, jobs: Sequence[Job], on_lock: Callable[[], None] = _ignore) -> None:
        """Carry out a batch and answer its callers, whatever happens.

        ``on_lock`` is called when the batch finds that another process has locked one of its orgs.
        Orgs that were found locked in the last seconds go after the others. The jobs of an org that
        opens quota windows go one by one: a window begins with all spending saved before it.
        """
        self.began_at = asyncio.get_running_loop().time()
        self.has_met_lock, self._on_lock = False, on_lock
        orgs = {job.org_id for job in jobs}
        singly = {job.org_id for job in jobs if job.opens_windows}
        held = self.cache.held.among(orgs)
        for part, serve in ((orgs - held, self._serve), (held, self._serve_as_released)):
            await serve(of_orgs(jobs, part - singly), 1)
            await self._serve_singly(of_orgs(jobs, part & singly))

    async def disconnect(self) -> None:
        """Close the connection, whatever state it is in."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await close_lane(self.pool, connection)

    async def _serve(self, jobs: Sequence[Job], attempt: int) -> None:
        """Carry out jobs in one transaction; retry or take them apart where that fails."""
        jobs = still_wanted(jobs)
        if not jobs:
            return
        try:
            results = await commit(await self._connected(), jobs, self.cache)
        except Conflict as conflict:
            await self._serve_again(jobs, attempt, conflict)
        except Unavailable as error:
            self.progress.failed(error)
            await self.disconnect()
            for job in jobs:
                job.fail(error)
        except Exception as error:  # noqa: BLE001  # a guard: every caller must be answered
            await self._serve_apart(jobs, error)
        else:
            if any(map(wrote, jobs, results)):
                self.progress.saved()
            for job, result in zip(jobs, results, strict=True):
                job.deliver(result)

    async def _serve_again(self, jobs: Sequence[Job], attempt: int, conflict: Conflict) -> None:
        """Retry after a conflict, a bounded number of times.

        If a row is locked that is not an org's own, every org is retried by itself: only the org
        with the locked row may be given up.
        """
        orgs = sorted({job.org_id for job in jobs})
        is_locked = isinstance(conflict, Locked)
        is_last = attempt >= ATTEMPTS_MAX
        if is_locked:
            self._note_lock()
        if (is_last or (is_locked and self._is_late())) and (len(orgs) == 1 or not is_locked):
            self._give_up(jobs, conflict)
        elif is_locked and not is_last and await self._held(orgs):
            await self._serve_as_released(jobs, attempt + 1)
        else:
            # Jitter only keeps two rivals apart; nothing depends on its quality.
            await asyncio.sleep(0.002 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311
            for part in [[org_id] for org_id in orgs] if is_locked else [orgs]:
                await self._serve(of_orgs(jobs, part), attempt + 1)

    async def _serve_as_released(self, jobs: Sequence[Job], attempt: int) -> None:
        """Carry out the jobs of orgs that nobody has locked, and the others as locks are released.

        A transaction that waits for one lock keeps the locks it has, so this looks before it locks.
        """
        while jobs := still_wanted(jobs):
            orgs = {job.org_id for job in jobs}
            held = await self._held(orgs)
            await self._serve(of_orgs(jobs, orgs - held), attempt)
            if not held:
                return
            self._note_lock()
            jobs = of_orgs(jobs, held)
            if self._is_late():
                self._give_up(jobs, Locked("somebody else holds the org"))
                return
            await asyncio.sleep(HELD_LOOK_S)

    def _note_lock(self) -> None:
        """Let another batch begin: this one may wait for a lock."""
        if not self.has_met_lock:
            self.has_met_lock = True
            self._on_lock()

    def _give_up(self, jobs: Sequence[Job], conflict: Conflict) -> None:
        """Tell callers to try again later; locked orgs go last in the next seconds."""
        if isinstance(conflict, Locked):
            self.cache.held.add({job.org_id for job in jobs})
        for job in jobs:
            job.fail(held(str(conflict)))

    async def _held(self, orgs: Collection[int]) -> set[int]:
        """The orgs whose rows another process has locked; none if that cannot be found out.

        It waits for its turn at the orgs, so that no other batch of this server has them locked.
        """
        if self.connection is None:
            return set()
        async with self.cache.turns.at(orgs):
            return await held_by_others(self.connection, orgs)

    def _is_late(self) -> bool:
        return asyncio.get_running_loop().time() - self.began_at > HELD_MAX_S

    async def _serve_apart(self, jobs: Sequence[Job], error: Exception) -> None:
        """Find the job that cannot be decided by carrying out each job by itself."""
        parts = jobs[0].split() if len(jobs) == 1 else jobs
        if len(parts) == 1:
            logger.error("a command of org %d could not be decided", jobs[0].org_id, exc_info=error)
            parts[0].fail(error)
            return
        for part in parts:
            await self._serve([part], 1)

    async def _serve_singly(self, jobs: Sequence[Job]) -> None:
        """Carry out one job after the other; wait for a locked org once, not for each job."""
        for job in jobs:
            if self._is_late() and self.cache.held.among([job.org_id]):
                job.fail(held("somebody else holds the org"))
            else:
                await self._serve([job], 1)

    async def _connected(self) -> Connection:
        """The connection; a new one if there is none or the old one has died."""
        if self.connection is not None and not is_open(self.connection):
            await self.disconnect()
        connection = self.connection
        if connection is None:
            connection = await open_lane(self.pool, timeout_s=CONNECT_TIMEOUT_S)
            self.connection = connection
        return connection


def wrote(job: Job, result: Result) -> bool:
    """Whether a job has changed anything; a rehearsal, a replay or a duplicate changes nothing."""
    return isinstance(result, list) and job.wrote(result)


def held(why: str) -> Unavailable:
    """The error of an org that somebody else holds, which is no trouble of the database."""
    error = Unavailable(why)
    error.is_noted = True
    return error


def of_orgs(jobs: Sequence[Job], orgs: Container[int]) -> list[Job]:
    """The jobs of some orgs, in their order."""
    return [job for job in jobs if job.org_id in orgs]


def still_wanted(jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose callers still wait; jobs that have waited too long are answered Busy."""
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


class WriteProgress:
    """Failures in a row, of batches and of requests before their batch; totals since the start.

    A clock that has jumped is no failure: the server itself decides nothing then, and says so.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = 0  # batches, since one was saved
        self.turned_away = 0  # requests before their batch, since one of them was decided
        self.saved_total = 0
        self.failed_total = 0
        self.turned_away_total = 0
        self.cause = ""
        self._clock = clock
        self._failed_at: deque[float] = deque([float("-inf")] * FAILURES_MIN, FAILURES_MIN)
        self._logged_at = float("-inf")
        self._unlogged = 0

    def saved(self) -> None:
        """Note that a batch was saved with what it wrote."""
        if self.failures >= FAILURES_MIN:
            logger.warning("writes get through again", extra={"fields": {"failed": self.failures}})
        self.failures = 0
        self.saved_total += 1

    def failed(self, error: Unavailable) -> None:
        """Note that a batch could not be saved; the log gets one line every ten seconds."""
        if isinstance(error, ClockJumped):
            return
        self.failures += 1
        self.failed_total += 1
        self._note(error)
        self._unlogged += 1
        if self._failed_at[-1] - self._logged_at >= LOGGED_EVERY_S:
            fields = {"cause": self.cause, "batches": self._unlogged}
            logger.error("a batch could not be saved", extra={"fields": fields})
            self._logged_at, self._unlogged = self._failed_at[-1], 0

    def decided(self) -> None:
        """Note that a request to write was not turned away."""
        self.turned_away = 0

    def turn_away(self, error: Exception) -> None:
        """Note that a request to write was answered with an error, unless its batch has told it."""
        if not isinstance(error, Unavailable) or isinstance(error, ClockJumped) or error.is_noted:
            return
        self.turned_away += 1
        self.turned_away_total += 1
        self._note(error)

    @property
    def trouble(self) -> str:
        """What is wrong with writes, or an empty string."""
        if self._clock() - self._failed_at[-1] > REMEMBERED_S:
            return ""
        if self.failures >= FAILURES_MIN:
            return f"the last {self.failures} batches of writes failed: {self.cause}"
        if self.turned_away >= FAILURES_MIN:
            return f"the last {self.turned_away} writes were turned away: {self.cause}"
        return ""

    @property
    def is_in_doubt(self) -> bool:
        """Whether several writes failed lately, or several in a row and none was saved since.

        A server most of whose writes get through is in doubt, and not in trouble.
        """
        return (
            self._clock() - self._failed_at[0] <= REMEMBERED_S
            or max(self.failures, self.turned_away) >= FAILURES_MIN
        )

    def _note(self, error: Unavailable) -> None:
        error.is_noted = True
        self.cause = str(error) or type(error).__name__
        self._failed_at.append(self._clock())
