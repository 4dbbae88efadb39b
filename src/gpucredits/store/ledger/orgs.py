"""Orgs: finding their numbers, and making the row that is locked before anything else."""

from __future__ import annotations

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors


async def find_org(connection: Connection | Pool, path: str) -> int | None:
    """The number of an org, if it exists."""
    with driver_errors():
        number: int | None = await connection.fetchval(
            "SELECT org_id FROM orgs WHERE path = $1", path
        )
    return number


async def ensure_org(connection: Connection | Pool, path: str) -> int:
    """The number of an org, made if need be; it exists for good once this returns."""
    with driver_errors():
        await connection.execute(
            "INSERT INTO orgs (path) VALUES ($1) ON CONFLICT (path) DO NOTHING", path
        )
    number = await find_org(connection, path)
    assert number is not None  # rows of orgs are never deleted
    return number


async def list_orgs(connection: Connection | Pool, *, start: str, limit: int) -> list[str]:
    """Paths of orgs in order, from one on; the system's own is not among them."""
    with driver_errors():
        rows = await connection.fetch(
            'SELECT path FROM orgs WHERE org_id > 0 AND path COLLATE "C" >= $1'
            ' ORDER BY path COLLATE "C" LIMIT $2',
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
