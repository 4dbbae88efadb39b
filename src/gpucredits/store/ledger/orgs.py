"""Orgs: finding their numbers, and making the row that is locked before anything else.

Owns: the directory of orgs, which gives each its number and keeps paths unique.
Must not: lock an org. The statement that saves a batch does (store/book/save.py), and so do
administrative acts (store/access/acts.py).
"""

from __future__ import annotations

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors


async def find_org(connection: Connection | Pool, path: str) -> int | None:
    """The number of an org, if it exists."""
    with driver_errors():
        number: int | None = await connection.fetchval(
            "SELECT org_id FROM org_directory WHERE path = $1 AND state = 1", path
        )
    return number


async def ensure_org(connection: Connection | Pool, path: str) -> int:
    """The number of an org, made if need be; it exists for good once this returns.

    The directory may be elsewhere than the org: it gives the number, the org gets its row, and the
    directory says so. Whoever finds a path that was left half-way finishes it.
    """
    number = await find_org(connection, path)
    if number is not None:
        return number
    with driver_errors():
        await connection.execute(
            "INSERT INTO org_directory (path) VALUES ($1) ON CONFLICT (path) DO NOTHING", path
        )
        number = await connection.fetchval("SELECT org_id FROM org_directory WHERE path = $1", path)
        assert number is not None  # rows of the directory are never deleted
        await connection.execute(
            "INSERT INTO orgs (org_id, path) VALUES ($1, $2) ON CONFLICT (org_id) DO NOTHING",
            number,
            path,
        )
        await connection.execute("UPDATE org_directory SET state = 1 WHERE org_id = $1", number)
    return int(number)


async def list_orgs(connection: Connection | Pool, *, start: str, limit: int) -> list[str]:
    """Paths of orgs in order, from one on."""
    with driver_errors():
        rows = await connection.fetch(
            "SELECT path FROM org_directory WHERE state = 1 AND path >= $1 ORDER BY path LIMIT $2",
            start,
            limit,
        )
    return [row["path"] for row in rows]


async def moment_of(connection: Connection, org_id: int) -> int:
    """The time by which an org is read: now, and never before what is on its books."""
    now: int = await connection.fetchval(
        "SELECT greatest(ledger_now(), clock) FROM orgs WHERE org_id = $1", org_id
    )
    return now
