"""The loop that every background job runs in.

Owns: starting, stopping, resting between ticks, and surviving a database that is away.
Must not: know what a tick does.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from gpucredits.service.write.errors import Busy
from gpucredits.store.database.errors import Conflict, Unavailable

logger = logging.getLogger(__name__)


class Paced(ABC):
    """A job whose ``tick`` does a bounded piece of work and says whether more is waiting.

    While ``is_held_up`` says so it only rests: nothing is done by a clock that is wrong.
    """

    def __init__(self, *, rest_s: float) -> None:
        self.rest_s = rest_s
        self.is_held_up: Callable[[], bool] = lambda: False
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def tick(self) -> bool:
        """Do a bounded piece of work; True to go on without a rest."""

    async def start(self) -> None:
        """Begin to tick."""
        self._stopping.clear()
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)

    def wake(self) -> None:
        """End the rest that is under way, or leave out the next one."""
        self._woken.set()

    async def stop(self) -> None:
        """Finish the tick under way and end."""
        self._stopping.set()
        self.wake()
        if self._task is not None:
            await self._task
            self._task = None

    async def _run(self) -> None:
        while not self._stopping.is_set():
            more = False
            try:
                if not self.is_held_up():
                    more = await self.tick()
            except (Busy, Conflict, Unavailable) as error:
                logger.warning("%s rests: %s", type(self).__name__, error)
            except Exception:
                logger.exception("%s failed and goes on", type(self).__name__)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), 0 if more else self.rest_s)
            self._woken.clear()
