"""Carrying out batches, one at a time, over a connection that is kept.

Owns: retries, keeping an org that somebody else holds and a command that cannot be decided away
from their neighbours, and answering every caller, whatever happens.
Must not: choose what is in a batch (waiting does), or know what a command means (core does).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection, Container, Sequence

from gpucredits.service.write.batch import Job, commit
from gpucredits.service.write.batch_queue import BUSY_RETRY_S
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.progress import WriteProgress
from gpucredits.store.book.cache.book_cache import BookCache
from gpucredits.store.database.batch_session import close_lane, held_by_others, is_open, open_lane
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import Conflict, Locked, Unavailable

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 4
HELD_MAX_S = 2.5  # after so long nothing more is begun for orgs that somebody else holds
HELD_LOOK_S = 0.05  # how often it is looked whether they were let go
CONNECT_TIMEOUT_S = 5.0
WAIT_MAX_S = 10.0


class BatchWorker:
    """Carries out one batch after the other."""

    def __init__(self, pool: Pool, shelf: BookCache, progress: WriteProgress) -> None:
        self.pool = pool
        self.shelf = shelf
        self.progress = progress
        self.connection: Connection | None = None
        self._began_at = 0.0

    async def serve(self, jobs: Sequence[Job]) -> None:
        """Carry out a batch and answer its callers, whatever happens.

        Orgs that somebody else held for too long, not long ago, go last. Where windows open, one
        job goes after the other: they begin with what was saved, and that has to be all there is.
        """
        self._began_at = asyncio.get_running_loop().time()
        orgs = {job.org_id for job in jobs}
        singly = {job.org_id for job in jobs if job.opens_windows}
        held = self.shelf.held.among(orgs)
        for part, serve in ((orgs - held, self._serve), (held, self._serve_as_let_go)):
            await serve(those_of(jobs, part - singly), 1)
            await self._serve_singly(those_of(jobs, part & singly))

    async def disconnect(self) -> None:
        """Let go of the connection, whatever state it is in."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await close_lane(self.pool, connection)

    async def _serve(self, jobs: Sequence[Job], attempt: int) -> None:
        """Carry out what is still wanted of some jobs; all of it at once if nothing prevents it."""
        jobs = still_wanted(jobs)
        if not jobs:
            return
        try:
            results = await commit(await self._connected(), jobs, self.shelf)
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
            self.progress.saved()
            for job, result in zip(jobs, results, strict=True):
                job.deliver(result)

    async def _serve_again(self, jobs: Sequence[Job], attempt: int, conflict: Conflict) -> None:
        """Others were in the way: try again, a bounded number of times.

        If something is locked and nobody holds the orgs themselves, every org goes by itself: only
        the org that is locked may be given up.
        """
        orgs = sorted({job.org_id for job in jobs})
        is_locked = isinstance(conflict, Locked)
        is_last = attempt >= ATTEMPTS_MAX
        if (is_last or (is_locked and self._is_late())) and (len(orgs) == 1 or not is_locked):
            self._give_up(jobs, conflict)
        elif is_locked and not is_last and await self._held(orgs):
            await self._serve_as_let_go(jobs, attempt + 1)
        else:
            # Jitter only keeps two rivals apart; nothing depends on its quality.
            await asyncio.sleep(0.002 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311
            for part in [[org_id] for org_id in orgs] if is_locked else [orgs]:
                await self._serve(those_of(jobs, part), attempt + 1)

    async def _serve_as_let_go(self, jobs: Sequence[Job], attempt: int) -> None:
        """Carry out what nobody else holds, and the rest as it is let go.

        Who waits for a lock holds those he has from others, and the lanes of a server from each
        other: so no org is waited for here that is seen to be held.
        """
        while jobs := still_wanted(jobs):
            orgs = {job.org_id for job in jobs}
            held = await self._held(orgs)
            await self._serve(those_of(jobs, orgs - held), attempt)
            if not held:
                return
            jobs = those_of(jobs, held)
            if self._is_late():
                self._give_up(jobs, Locked("somebody else holds the org"))
                return
            await asyncio.sleep(HELD_LOOK_S)

    def _give_up(self, jobs: Sequence[Job], conflict: Conflict) -> None:
        """Tell callers to try again later; orgs that are locked go last for a while."""
        if isinstance(conflict, Locked):
            self.shelf.held.add({job.org_id for job in jobs})
        for job in jobs:
            job.fail(Unavailable(str(conflict)))

    async def _held(self, orgs: Collection[int]) -> set[int]:
        """The orgs whose rows another process has locked just now, as far as that can be seen.

        The look waits for its turn at the orgs, so that no lane of this server holds them then.
        """
        if self.connection is None:
            return set()
        async with self.shelf.turns.at(orgs):
            return await held_by_others(self.connection, orgs)

    def _is_late(self) -> bool:
        return asyncio.get_running_loop().time() - self._began_at > HELD_MAX_S

    async def _serve_apart(self, jobs: Sequence[Job], error: Exception) -> None:
        """Something in a batch cannot be decided: find it by carrying out everything singly."""
        parts = jobs[0].split() if len(jobs) == 1 else jobs
        if len(parts) == 1:
            logger.error("a command of org %d could not be decided", jobs[0].org_id, exc_info=error)
            parts[0].fail(error)
            return
        for part in parts:
            await self._serve([part], 1)

    async def _serve_singly(self, jobs: Sequence[Job]) -> None:
        """Carry out one job after the other; an org that is held is not waited for each time."""
        for job in jobs:
            if self._is_late() and self.shelf.held.among([job.org_id]):
                job.fail(Unavailable("somebody else holds the org"))
            else:
                await self._serve([job], 1)

    async def _connected(self) -> Connection:
        """The connection, a new one if there is none or it has died since."""
        if self.connection is not None and not is_open(self.connection):
            await self.disconnect()
        connection = self.connection
        if connection is None:
            connection = await open_lane(self.pool, timeout_s=CONNECT_TIMEOUT_S)
            self.connection = connection
        return connection


def those_of(jobs: Sequence[Job], orgs: Container[int]) -> list[Job]:
    """The jobs of some orgs, in their order."""
    return [job for job in jobs if job.org_id in orgs]


def still_wanted(jobs: Sequence[Job]) -> list[Job]:
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
