"""The raw limit: COPY of the very entry rows that ours wrote, in commits of the same sizes.

Owns: reading the rows back, and writing them into an empty table with the same columns and
indexes, with nothing else to do: no balances, no reservations, no rules, no HTTP.
"""

from __future__ import annotations

import asyncio
import io
import time
from dataclasses import dataclass

import asyncpg
from asyncpg import Connection, Record

HEADER_BYTES = 19  # signature, flags and the length of the extension
TRAILER = b"\xff\xff"
ROWS_MAX = 400_000
CONNECTIONS = (1, 2, 4)
TABLE = "entries_copied"
SETTLED = 6
READ_ROWS = f"""
SELECT org_id, type, entry_id, recorded_at, effective_at, account_id, amount, reserve, grant_id,
    other_id, other_grant_id, reservation_id, seq
FROM (SELECT * FROM entries WHERE type = {SETTLED} AND recorded_at BETWEEN $1 AND $2
    ORDER BY recorded_at LIMIT {ROWS_MAX}) AS rows
ORDER BY recorded_at"""  # noqa: S608  # constants of ours
READ_COMMITS = f"""
SELECT count(*)::integer AS size FROM (
    SELECT recorded_at FROM entries WHERE type = {SETTLED} AND recorded_at BETWEEN $1 AND $2
    ORDER BY recorded_at LIMIT {ROWS_MAX}) AS rows
GROUP BY recorded_at ORDER BY recorded_at"""  # noqa: S608  # constants of ours


@dataclass(frozen=True, slots=True)
class Limit:
    """Rows per second, at best, and with how many rows in a commit."""

    per_second: float
    connections: int
    rows: int
    rows_per_commit: float


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of each commit, ready to be sent."""

    commits: list[bytes]
    count: int


async def measure(url: str, began_us: int, ended_us: int) -> Limit:
    """The best of several connection counts, on the heartbeats recorded between two instants."""
    connection = await asyncpg.connect(url)
    try:
        rows = await read_back(connection, began_us, ended_us)
        best = 0.0
        best_connections = 0
        for connections in CONNECTIONS:
            await empty_table(connection)
            per_second = await copy_all(url, rows, connections)
            if per_second > best:
                best, best_connections = per_second, connections
        await connection.execute(f"DROP TABLE {TABLE}")
    finally:
        await connection.close()
    return Limit(best, best_connections, rows.count, rows.count / max(len(rows.commits), 1))


async def read_back(connection: Connection[Record], began_us: int, ended_us: int) -> Rows:
    """The rows as COPY's binary format has them: all of one width, so commits are cut by length."""
    sizes = [row["size"] for row in await connection.fetch(READ_COMMITS, began_us, ended_us)]
    stored = io.BytesIO()
    await connection.copy_from_query(READ_ROWS, began_us, ended_us, output=stored, format="binary")
    data = stored.getvalue()
    count = sum(sizes)
    if not count:
        raise RuntimeError("there are no heartbeats to copy")
    width = (len(data) - HEADER_BYTES - len(TRAILER)) // count
    commits = []
    start = HEADER_BYTES
    for size in sizes:
        end = start + size * width
        commits.append(data[:HEADER_BYTES] + data[start:end] + TRAILER)
        start = end
    return Rows(commits, count)


async def empty_table(connection: Connection[Record]) -> None:
    """A table like the ledger's: columns, checks and indexes."""
    await connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
    await connection.execute(f"CREATE TABLE {TABLE} (LIKE entries INCLUDING ALL)")
    await connection.execute("CHECKPOINT")


async def copy_all(url: str, rows: Rows, connections: int) -> float:
    """Copy every commit, dealt out over some connections; rows per second."""
    opened = [await asyncpg.connect(url) for _ in range(connections)]
    waiting = iter(rows.commits)

    async def write(connection: Connection[Record]) -> None:
        for commit in waiting:
            source = io.BytesIO(commit)
            await connection.copy_to_table(TABLE, source=source, format="binary")

    try:
        began = time.perf_counter()
        await asyncio.gather(*[write(connection) for connection in opened])
        return rows.count / (time.perf_counter() - began)
    finally:
        for connection in opened:
            await connection.close()
