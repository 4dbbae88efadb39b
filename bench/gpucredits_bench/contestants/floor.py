"""The floor: keys of requests made durable together, and nothing else.

Owns: the least that a durable server does behind HTTP. It keeps one row for each request, and
writes the rows of all requests that wait in one statement, one statement at a time.
Must not: read an account, move a credit or refuse: it answers what the load expects.
"""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg
from asyncpg import Connection, Record

from gpucredits.core.money import MILLI_PER_GPU, cost
from gpucredits_bench.workload import PRICE_PER_GPU_HOUR

DATABASE: Final = "floor"
CREATE = "CREATE TABLE requests (key text PRIMARY KEY)"
WRITE = "INSERT INTO requests SELECT unnest($1::text[]) ON CONFLICT DO NOTHING"


class Floor:
    """One connection, and the requests that wait for it."""

    def __init__(self, connection: Connection[Record]) -> None:
        self.statements = 0
        self._connection = connection
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._work: asyncio.Task[None] | None = None
        self._numbers = 0

    @classmethod
    async def connect(cls, url: str) -> Floor:
        """Connect to a database that has the table."""
        return cls(await asyncpg.connect(url))

    async def close(self) -> None:
        """End the connection."""
        await self._connection.close()

    async def reserve(
        self, account: str, job_id: str, gpu_type: str, gpus: int, window_ms: int, key: str
    ) -> tuple[str, int]:
        """Keep the key, and make a lease up."""
        del account, job_id, gpu_type
        await self._keep(key)
        self._numbers += 1
        rate = gpus * MILLI_PER_GPU * PRICE_PER_GPU_HOUR
        return f"rsv_{self._numbers}", cost(rate, window_ms)

    async def settle(self, reservation_id: str, used_ms: int, key: str) -> int:
        """Keep the key, and say what one GPU costs."""
        del reservation_id
        await self._keep(key)
        return cost(MILLI_PER_GPU * PRICE_PER_GPU_HOUR, used_ms)

    async def _keep(self, key: str) -> None:
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, kept))
        if self._work is None:
            self._work = asyncio.create_task(self._write_all())
        await kept

    async def _write_all(self) -> None:
        """Write what waits, and what has arrived meanwhile, until nothing waits."""
        await asyncio.sleep(0)  # all requests of this round of the event loop
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._connection.execute(WRITE, [key for key, _ in batch])
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                for _, kept in batch:
                    kept.set_exception(error)
                continue
            self.statements += 1
            for _, kept in batch:
                kept.set_result(None)
        self._work = None


async def create(connection: Connection[Record]) -> None:
    """Make the table."""
    await connection.execute(CREATE)
