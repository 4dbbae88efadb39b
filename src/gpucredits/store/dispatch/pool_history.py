"""What is kept of a pool's past: use that fades, and the last decisions with their snapshots.

Owns: the rows of pool_usage and pool_snapshots, and their bounds.
Must not: read anything into a snapshot.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpucredits.store.database.connection import Connection

SNAPSHOTS_KEPT: Final = 20  # of each pool


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot and what was decided on it, both as JSON."""

    taken_at: int
    snapshot: bytes
    decision: bytes


async def keep_snapshot(
    db: Connection, pool_id: int, *, taken_at: int, snapshot: bytes, decision: bytes
) -> None:
    """Keep a decision, and of the older ones only the last few."""
    await db.execute(
        "WITH kept AS (INSERT INTO pool_snapshots (pool_id, taken_at, snapshot, decision)"
        " VALUES ($1, $2, $3, $4)) DELETE FROM pool_snapshots WHERE org_id = 0 AND pool_id = $1"
        " AND snapshot_id <= (SELECT snapshot_id FROM pool_snapshots WHERE org_id = 0"
        " AND pool_id = $1 ORDER BY snapshot_id DESC OFFSET $5 LIMIT 1)",
        pool_id,
        taken_at,
        zlib.compress(snapshot, 1),
        zlib.compress(decision, 1),
        SNAPSHOTS_KEPT - 1,
    )


async def latest_snapshot(db: Connection, pool_id: int) -> KeptSnapshot | None:
    """The last decision that was kept."""
    row = await db.fetchrow(
        "SELECT taken_at, snapshot, decision FROM pool_snapshots WHERE org_id = 0"
        " AND pool_id = $1 ORDER BY snapshot_id DESC LIMIT 1",
        pool_id,
    )
    if row is None:
        return None
    return KeptSnapshot(
        row["taken_at"], zlib.decompress(row["snapshot"]), zlib.decompress(row["decision"])
    )


async def keep_usage(
    db: Connection, pool_id: int, *, since: int, until: int, usage: Mapping[str, int]
) -> bool:
    """Replace what was used, if nobody else has counted since; whether it was replaced."""
    async with db.transaction():
        moved = await db.fetchval(
            "UPDATE pool_dispatch SET used_until = $3 WHERE org_id = 0 AND pool_id = $1"
            " AND used_until = $2 RETURNING 1",
            pool_id,
            since,
            until,
        )
        if moved is None:
            return False
        await db.execute("DELETE FROM pool_usage WHERE org_id = 0 AND pool_id = $1", pool_id)
        await db.execute(
            "INSERT INTO pool_usage (pool_id, path, usage)"
            " SELECT $1, x.path, x.usage::numeric"
            " FROM unnest($2::text[], $3::text[]) AS x(path, usage)",
            pool_id,
            list(usage),
            [str(each) for each in usage.values()],
        )
    return True
