"""Saves what request buckets hold, every few seconds and once more at the end."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from gpucredits.jobs.pace import Paced
from gpucredits.service.limits.limiter import Limiter
from gpucredits.store.database.errors import Conflict, Unavailable

STOP_TIMEOUT_S: Final = 5.0

logger = logging.getLogger(__name__)


class BucketSaver(Paced):
    """Starts and stops a limiter, and saves its levels in bounded batches."""

    def __init__(self, limiter: Limiter, *, rest_s: float = 2.0) -> None:
        super().__init__(rest_s=rest_s)
        self.limiter = limiter

    async def start(self) -> None:
        """Begin with the limiter."""
        await self.limiter.start()
        await super().start()

    async def stop(self) -> None:
        """Save what is left, within a bound of time, and end the limiter."""
        await super().stop()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                while await self.limiter.save():
                    pass
        except (Conflict, Unavailable, TimeoutError) as error:
            logger.warning("the last levels of request buckets were not saved: %r", error)
        await self.limiter.stop()

    async def tick(self) -> bool:
        """Save a batch of levels."""
        return await self.limiter.save()
