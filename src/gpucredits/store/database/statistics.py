"""Statistics for the planner about tables that grow fast.

The database looks after its statistics by itself, but once a minute at best, and a new database
grows a thousandfold in its first minute: meanwhile its plans are those for empty tables.
"""

from __future__ import annotations

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import driver_errors

# As text that can be put into a statement; the database quotes it.
GROWN = """
SELECT s.relid::regclass::text FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
WHERE s.schemaname = current_schema() AND s.n_live_tup >= $1 * greatest(c.reltuples, $2)
"""


async def analyze_grown(connection: Connection, *, times: int, rows_min: int) -> list[str]:
    """Analyze tables that have many times the rows that the planner knows of; their names."""
    with driver_errors():
        grown = [row[0] for row in await connection.fetch(GROWN, times, rows_min)]
        for table in grown:
            await connection.execute(f"ANALYZE {table}")
    return grown
