"""The one clock with authority: the database's, moved on by the test clock's offset."""

from __future__ import annotations

from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import driver_errors


async def read_clock(connection: Connection | Pool) -> int:
    """Microseconds since 1970 UTC, now."""
    with driver_errors():
        now: int = await connection.fetchval("SELECT ledger_now()")
    return now


async def read_offset(connection: Connection | Pool) -> int:
    """By how many microseconds a test clock has moved this database's time on."""
    with driver_errors():
        offset: int = await connection.fetchval("SELECT offset_us FROM clock")
    return offset


async def advance_clock(connection: Connection | Pool, microseconds: int) -> int:
    """Move time on, for tests only; the new offset. Time never goes back."""
    with driver_errors():
        offset: int = await connection.fetchval(
            "UPDATE clock SET offset_us = offset_us + $1 RETURNING offset_us", microseconds
        )
    return offset
