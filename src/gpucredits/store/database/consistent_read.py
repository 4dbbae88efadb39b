"""Reading one moment of the database, on whichever pooled connection still works.

After the database has restarted a pool is full of dead connections; nothing has been read when
that shows, so the next one is tried.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from gpucredits.store.database.batch_session import close_lane
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import DRIVER_ERRORS, Unavailable, driver_errors

ATTEMPTS_MAX = 20


@asynccontextmanager
async def snapshot(pool: Pool, *, timeout_s: float = 10.0) -> AsyncIterator[Connection]:
    """A connection on which everything that is read is of one moment; raises Unavailable."""
    connection = await begin(pool, timeout_s=timeout_s)
    with driver_errors():
        try:
            yield connection
        finally:
            with suppress(*DRIVER_ERRORS):
                await connection.execute("ROLLBACK")
            await pool.release(connection)


async def begin(pool: Pool, *, timeout_s: float) -> Connection:
    """A connection with a read-only transaction open on it."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        with driver_errors():
            connection = await pool.acquire(timeout=timeout_s)
        try:
            with driver_errors():
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        except BaseException as error:
            await close_lane(pool, connection)
            if not isinstance(error, Unavailable) or attempt == ATTEMPTS_MAX:
                raise
        else:
            return connection
    raise AssertionError("the last attempt returns or raises")
