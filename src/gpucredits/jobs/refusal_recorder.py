"""Writes refusals that belong in the audit log, within a second, and once more at the end."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from gpucredits.jobs.pace import Paced
from gpucredits.service.access.refusals import Refusals, record
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.errors import Conflict, Unavailable

STOP_TIMEOUT_S: Final = 5.0
LOOK_S: Final = 60.0

logger = logging.getLogger(__name__)


class RefusalRecorder(Paced):
    """Writes at most as many rows as there are kinds of refusals in ten minutes."""

    def __init__(self, pool: Pool, refusals: Refusals, *, rest_s: float = 1.0) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.refusals = refusals
        self._looks_at = 0.0

    async def stop(self) -> None:
        """Write what is left, within a bound of time."""
        await super().stop()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await record(self.pool, self.refusals, now=time.monotonic())
        except (Conflict, Unavailable, TimeoutError) as error:
            logger.warning("the last refusals were not written down: %r", error)

    async def tick(self) -> bool:
        """Write what is due; counted ones are looked for once a minute."""
        now = time.monotonic()
        if self.refusals.has_news or now >= self._looks_at:
            self._looks_at = now + LOOK_S
            await record(self.pool, self.refusals, now=now)
        return False
