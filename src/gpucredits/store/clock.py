"""The one clock with authority: the database's, moved on by the test clock's offset."""

from __future__ import annotations

from gpucredits.store.access.audit import SYSTEM
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors

ADVANCE = """
WITH moved AS (UPDATE clock SET offset_us = offset_us + $1 RETURNING offset_us), noted AS (
    INSERT INTO audit_log (org_id, recorded_at, actor, action, resource, old, new, request_id)
    SELECT 0, ledger_now(), $2, 'clock.advance', 'clock',
        jsonb_build_object('offset_us', offset_us - $1),
        jsonb_build_object('offset_us', offset_us), $3
    FROM moved
)
SELECT offset_us FROM moved
"""


async def read_clock(connection: Connection | Pool) -> int:
    """Microseconds since 1970 UTC, now."""
    with driver_errors():
        now: int = await connection.fetchval("SELECT ledger_now()")
    return now


async def read_clock_and_offset(connection: Connection | Pool) -> tuple[int, int]:
    """The time, and by how much of it a test clock has moved it on."""
    with driver_errors():
        row = await connection.fetchrow("SELECT clock_us(c.offset_us), c.offset_us FROM clock c")
    return row[0], row[1]


async def read_offset(connection: Connection | Pool) -> int:
    """By how many microseconds a test clock has moved this database's time on."""
    with driver_errors():
        offset: int = await connection.fetchval("SELECT offset_us FROM clock")
    return offset


async def advance_clock(
    connection: Connection | Pool,
    microseconds: int,
    *,
    actor: str = SYSTEM,
    request_id: str = "",
) -> int:
    """Move time on, for tests only, and record who did; the new offset. Time never goes back."""
    with driver_errors():
        offset: int = await connection.fetchval(ADVANCE, microseconds, actor, request_id)
    return offset
