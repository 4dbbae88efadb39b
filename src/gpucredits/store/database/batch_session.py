"""The session of a lane: statements over arrays of ids, planned once.

The arrays are short and every join is by key, so plans that read whole tables are switched off:
a plan made while a table was small would otherwise stay when it has grown. Locks are waited for
briefly: a batch that waits for one org holds up all its others.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import asyncpg

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import DRIVER_ERRORS, driver_errors

SESSION = """
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off;
SET lock_timeout = '1s'
"""
HELD = """
WITH free AS MATERIALIZED (
    SELECT o.org_id FROM orgs o WHERE o.org_id = ANY ($1::integer[]) FOR NO KEY UPDATE SKIP LOCKED
)
SELECT o.org_id FROM orgs o WHERE o.org_id = ANY ($1::integer[])
    AND NOT EXISTS (SELECT FROM free f WHERE f.org_id = o.org_id)"""


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


def is_open(connection: Connection) -> bool:
    """Whether a connection can still be used, as far as the driver has noticed."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it back, as it does with one that dies
        return False


async def held_by_others(connection: Connection, orgs: Iterable[int]) -> set[int]:
    """Those of some orgs whose rows somebody has locked; none if that cannot be found out."""
    with suppress(*DRIVER_ERRORS):
        return {row[0] for row in await connection.fetch(HELD, sorted(orgs))}
    return set()
