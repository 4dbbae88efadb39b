"""Pools of GPUs and the weights of those who share them, at rest.

Owns: the rows of pools and pool_weights. A pool of GPUs is a ``GpuPool`` here, because a ``Pool``
is one of connections.
Must not: know who waits or runs (store.queue and store.dispatch do).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch.queue import IS_OPEN

NO_POOL: Final = 0  # the pool of everything that has none
CHANNEL: Final = "gpucredits_pools"  # somebody waits, a lease ended, or a pool was set


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPool:
    """One type of GPU in one region: what there is of it, and how it is shared."""

    gpu_type: str
    region: str
    gpus: int | None = None
    cpus: int | None = None
    memory: int | None = None
    preemption: bool = True
    grace_ms: int = 30_000
    min_runtime_ms: int = 300_000
    preemptions_max: int = 100
    backfill: bool = True
    backfill_depth: int = 1_000
    hold_after_ms: int = 3_600_000
    priority_scope: str = "user"
    usage_order: str = "ignored"
    half_life_ms: int = 0
    borrowing: bool = True
    window_max_ms: int = 0
    updated_at: int = 0
    pool_id: int = 0

    @property
    def gates(self) -> bool:
        """Whether there is a capacity to divide."""
        return self.gpus is not None

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.gpu_type}/{self.region}"


class Weight(NamedTuple):
    """How much of a pool an org, a project or a user counts for."""

    path: str
    weight: int
    may_borrow: bool = True


COLUMNS: Final = ", ".join(field.name for field in fields(GpuPool))
SET: Final = [
    field.name
    for field in fields(GpuPool)
    if field.name not in ("pool_id", "updated_at", "gpu_type", "region")
]
SAVE: Final = (
    f"INSERT INTO pools (gpu_type, region, {', '.join(SET)}, updated_at)"  # noqa: S608  # names of columns
    f" VALUES ($1, $2, {', '.join(f'${each}' for each in range(3, len(SET) + 3))}, ledger_now())"
    " ON CONFLICT (org_id, gpu_type, region) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*SET, "updated_at"))
    + f" RETURNING {COLUMNS}"
)
READ: Final = f"SELECT {COLUMNS} FROM pools WHERE org_id = 0"  # noqa: S608  # names of columns


async def list_pools(db: Connection) -> list[GpuPool]:
    """Every pool, that of everything without one included."""
    rows = await db.fetch(f"{READ} ORDER BY gpu_type, region")
    return [GpuPool(**row) for row in rows]


async def find_pool(db: Connection, gpu_type: str, region: str) -> GpuPool | None:
    """A pool by its name."""
    row = await db.fetchrow(
        f"{READ} AND gpu_type = $1 AND region = $2 AND pool_id > 0", gpu_type, region
    )
    return None if row is None else GpuPool(**row)


async def save_pool(db: Connection, pool: GpuPool) -> GpuPool:
    """Set a pool, making it if need be; what was decided before this no longer counts.

    Nor does what was decided about those without a pool: this may be theirs.
    """
    values = [getattr(pool, name) for name in SET]
    row = await db.fetchrow(SAVE, pool.gpu_type, pool.region, *values)
    saved = GpuPool(**row)
    await db.execute(
        "INSERT INTO pool_dispatch (pool_id) VALUES ($1), ($2) ON CONFLICT (org_id, pool_id)"
        " DO UPDATE SET version = new_version()",
        saved.pool_id,
        NO_POOL,
    )
    await ring(db)
    return saved


async def remove_pool(db: Connection, pool_id: int) -> None:
    """Take a pool away; who waits in it waits for credits and quota only."""
    await db.execute(
        f"UPDATE queue SET pool_id = $2 WHERE pool_id = $1 AND {IS_OPEN}",  # noqa: S608  # constant texts only
        pool_id,
        NO_POOL,
    )
    await db.execute("DELETE FROM pools WHERE org_id = 0 AND pool_id = $1", pool_id)
    await ring(db)


async def list_weights(db: Connection, pool_id: int) -> list[Weight]:
    """The weights of a pool in order of paths."""
    rows = await db.fetch(
        "SELECT path, weight, may_borrow FROM pool_weights WHERE org_id = 0 AND pool_id = $1"
        " ORDER BY path",
        pool_id,
    )
    return [Weight(*row) for row in rows]


async def first_unknown(db: Connection, paths: Sequence[str]) -> str | None:
    """The first of some paths at which there is no account."""
    path: str | None = await db.fetchval(
        "SELECT named.path FROM unnest($1::text[]) AS named (path) WHERE NOT EXISTS"
        " (SELECT FROM orgs JOIN accounts USING (org_id)"
        " WHERE orgs.path = split_part(named.path, '/', 1) AND accounts.path = named.path)"
        " ORDER BY named.path LIMIT 1",
        list(paths),
    )
    return path


async def replace_weights(db: Connection, pool_id: int, weights: Sequence[Weight]) -> None:
    """Set all weights of a pool at once."""
    await db.execute("DELETE FROM pool_weights WHERE org_id = 0 AND pool_id = $1", pool_id)
    await db.executemany(
        "INSERT INTO pool_weights (pool_id, path, weight, may_borrow) VALUES ($1, $2, $3, $4)",
        [(pool_id, *weight) for weight in weights],
    )
    await ring(db)


async def ring(db: Connection) -> None:
    """Wake every dispatcher once this transaction is committed."""
    await db.execute("SELECT pg_notify($1, '')", CHANNEL)
