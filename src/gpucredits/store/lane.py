"""The session of a lane: statements over arrays of ids, planned once.

The arrays are short and every join is by key, so plans that read whole tables are switched off:
a plan made while a table was small would otherwise stay when it has grown.
"""

from __future__ import annotations

from contextlib import suppress

from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import DRIVER_ERRORS, driver_errors

SESSION = """
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off
"""


async def open_lane(pool: Pool, *, timeout_s: float) -> Connection:
    """A connection that is ready to carry out batches; raises Unavailable."""
    with driver_errors():
        connection = await pool.acquire(timeout=timeout_s)
        try:
            await connection.execute(SESSION)
        except BaseException:
            await close_lane(pool, connection)
            raise
    return connection


async def close_lane(pool: Pool, connection: Connection) -> None:
    """Let go of a connection, whatever state it is in."""
    with suppress(*DRIVER_ERRORS):
        connection.terminate()
    with suppress(*DRIVER_ERRORS):
        await pool.release(connection)
