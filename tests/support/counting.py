"""How many rows of a table a piece of work reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gpucredits.store.database.connection import Connection

READ = """
SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1"""


async def rows_read(
    db: Connection, table: str, work: Callable[[Connection], Awaitable[object]]
) -> int:
    """Rows of the table that the work reads; those found by an index may count twice."""
    async with db.transaction():
        before: int = await db.fetchval(READ, table)
        await work(db)
        after: int = await db.fetchval(READ, table)
    return after - before
