"""Hearing at once what other processes have committed, where polling would be late.

Owns: one connection that listens. Nothing depends on hearing: whoever listens also looks now and
then, so a bell that is lost costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import close_lane
from gpucredits.store.database.durability import UnsafeDatabaseError
from gpucredits.store.database.errors import DRIVER_ERRORS, Unavailable

logger = logging.getLogger(__name__)

RETRY_S = 1.0
Ring = Callable[[], None]


class Notifier:
    """Calls a function for every announcement on its channel, as long as it runs."""

    def __init__(self, pool: Pool, rings: Mapping[str, Ring]) -> None:
        self._pool = pool
        self._rings = rings
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)

    async def stop(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except (*DRIVER_ERRORS, TimeoutError, Unavailable, UnsafeDatabaseError) as error:
                logger.info("the bell listens again soon: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        """Listen until the connection is gone."""
        gone = asyncio.Event()
        connection = await self._pool.acquire(timeout=5.0)

        def heard(_: Connection, __: int, channel: str, ___: Any) -> None:
            self._rings[channel]()

        try:
            connection.add_termination_listener(lambda _: gone.set())
            for channel in self._rings:
                await connection.add_listener(channel, heard)
            for ring in self._rings.values():  # what was announced before is not heard again
                ring()
            await gone.wait()
        finally:
            await close_lane(self._pool, connection)
