"""Carrying out batches, one at a time, over a connection that is kept.

Owns: retries, keeping a command that cannot be decided away from its neighbours, and answering
every caller, whatever happens.
Must not: choose what is in a batch (waiting does), or know what a command means (core does).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence

from gpucredits.service.batch import Job, Result, commit
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import Conflict, Unavailable
from gpucredits.store.lane import close_lane, open_lane
from gpucredits.store.shelf import Shelf

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 4
CONNECT_TIMEOUT_S = 5.0


class Carrier:
    """Carries out one batch after the other."""

    def __init__(self, pool: Pool, shelf: Shelf) -> None:
        self.pool = pool
        self.shelf = shelf
        self.connection: Connection | None = None

    async def serve(self, jobs: Sequence[Job]) -> None:
        """Carry out a batch and answer its callers, whatever happens."""
        try:
            results = await self._commit(jobs)
        except (Unavailable, Conflict) as error:
            await self.disconnect()
            reported = error if isinstance(error, Unavailable) else Unavailable(str(error))
            for job in jobs:
                job.fail(reported)
        except Exception as error:  # noqa: BLE001  # a guard: every caller must be answered
            await self._serve_apart(jobs, error)
        else:
            for job, result in zip(jobs, results, strict=True):
                job.deliver(result)

    async def disconnect(self) -> None:
        """Let go of the connection, whatever state it is in."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await close_lane(self.pool, connection)

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

    async def _connected(self) -> Connection:
        """The connection, a new one if there is none."""
        connection = self.connection
        if connection is None:
            connection = await open_lane(self.pool, timeout_s=CONNECT_TIMEOUT_S)
            self.connection = connection
        return connection
