"""Pools of GPUs: settings and weights, the rows for a decision, past use and snapshots.

Owns: the rows of pools, pool_weights and the directory of pools; reading a pool's leases, requests
and settings as of one moment, and its lapsed leases; the rows of pool_usage and pool_snapshots, and
their bounds. A pool of GPUs is a ``GpuPool`` here; a ``Pool`` is a pool of connections.
Must not: decide, or write the outcomes of requests (queue and cycle do).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch.queue import IS_OPEN, ROW, Key, QueuedRequest

SNAPSHOTS_KEPT: Final = 20  # of each pool

WAITING_MAX: Final = 50_000  # looked at in one cycle; of each account its first come first

NO_POOL: Final = 0  # the pool of everything that has none
CHANNEL: Final = "gpucredits_pools"  # somebody waits, a lease ended, or a pool was set


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPool:
    """One GPU type in one region: its capacity, and how it is shared."""

    gpu_type: str
    region: str
    milli_gpus: int | None = None
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
        """Whether the pool has a capacity to divide."""
        return self.milli_gpus is not None

    @property
    def name(self) -> str:
        """The pool's name for people."""
        return f"{self.gpu_type}/{self.region}"


class Weight(NamedTuple):
    """The weight of an org, a project or a user in a pool."""

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
    f"INSERT INTO pools (pool_id, gpu_type, region, {', '.join(SET)}, updated_at)"  # noqa: S608  # names of columns
    f" VALUES ($1, $2, $3, {', '.join(f'${each}' for each in range(4, len(SET) + 4))},"
    " ledger_now()) ON CONFLICT (pool_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*SET, "updated_at"))
    + f" RETURNING {COLUMNS}"
)
READ: Final = f"SELECT {COLUMNS} FROM pools"  # noqa: S608  # names of columns


async def list_pools(db: Connection) -> list[GpuPool]:
    """Every pool, and the pseudo-pool of all GPUs without a pool."""
    rows = await db.fetch(f"{READ} ORDER BY gpu_type, region")
    return [GpuPool(**row) for row in rows]


async def find_pool(db: Connection, gpu_type: str, region: str) -> GpuPool | None:
    """A pool by its name."""
    row = await db.fetchrow(
        f"{READ} WHERE gpu_type = $1 AND region = $2 AND pool_id > 0", gpu_type, region
    )
    return None if row is None else GpuPool(**row)


async def ensure_number(db: Connection, gpu_type: str, region: str) -> int:
    """The number that the directory gives a pool of this name."""
    await db.execute(
        "INSERT INTO pool_directory (gpu_type, region) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        gpu_type,
        region,
    )
    number: int = await db.fetchval(
        "SELECT pool_id FROM pool_directory WHERE gpu_type = $1 AND region = $2", gpu_type, region
    )
    return number


async def save_pool(db: Connection, pool: GpuPool) -> GpuPool:
    """Make or change a pool; earlier decisions about it no longer count.

    Earlier decisions about requests without a pool do not count either: this may be their pool.
    """
    values = [getattr(pool, name) for name in SET]
    number = await ensure_number(db, pool.gpu_type, pool.region)
    row = await db.fetchrow(SAVE, number, pool.gpu_type, pool.region, *values)
    saved = GpuPool(**row)
    await db.execute(
        "INSERT INTO pool_dispatch (pool_id) VALUES ($1), ($2) ON CONFLICT (pool_id)"
        " DO UPDATE SET version = new_version()",
        saved.pool_id,
        NO_POOL,
    )
    await ring(db)
    return saved


async def remove_pool(db: Connection, pool_id: int) -> None:
    """Remove a pool; its requests then wait for credits and quota only."""
    await db.execute(
        f"UPDATE queue SET pool_id = $2 WHERE pool_id = $1 AND {IS_OPEN}",  # noqa: S608  # constant texts only
        pool_id,
        NO_POOL,
    )
    await db.execute("DELETE FROM pools WHERE pool_id = $1", pool_id)
    await db.execute("DELETE FROM pool_directory WHERE pool_id = $1", pool_id)
    await ring(db)


async def list_weights(db: Connection, pool_id: int) -> list[Weight]:
    """The weights of a pool in order of paths."""
    rows = await db.fetch(
        "SELECT path, weight, may_borrow FROM pool_weights WHERE pool_id = $1 ORDER BY path",
        pool_id,
    )
    return [Weight(*row) for row in rows]


async def first_unknown(db: Connection, paths: Sequence[str]) -> str | None:
    """The first of some paths at which there is no account."""
    path: str | None = await db.fetchval(
        "SELECT named.path FROM unnest($1::text[]) AS named (path) WHERE NOT EXISTS"
        " (SELECT FROM org_directory o JOIN accounts USING (org_id)"
        " WHERE o.path = split_part(named.path, '/', 1) AND accounts.path = named.path)"
        " ORDER BY named.path LIMIT 1",
        list(paths),
    )
    return path


async def replace_weights(db: Connection, pool_id: int, weights: Sequence[Weight]) -> None:
    """Set all weights of a pool at once."""
    await db.execute("DELETE FROM pool_weights WHERE pool_id = $1", pool_id)
    await db.executemany(
        "INSERT INTO pool_weights (pool_id, path, weight, may_borrow) VALUES ($1, $2, $3, $4)",
        [(pool_id, *weight) for weight in weights],
    )
    await ring(db)


async def ring(db: Connection) -> None:
    """Wake every dispatcher once this transaction is committed."""
    await db.execute("SELECT pg_notify($1, '')", CHANNEL)


class LiveLease(NamedTuple):
    """A live lease in a pool; a lease from the queue has the terms of its request."""

    org_id: int
    reservation_id: int
    account: str
    milli_gpus: int
    cpus: int
    memory: int
    priority: int
    gang: str
    admitted_at: int
    expected_ms: int
    preemptible: bool
    expires_at: int
    stopping_at: int
    overtook: bool


class Drain(NamedTuple):
    """A live lease that was told to stop, and the number of the request that needs its room."""

    org_id: int
    reservation_id: int
    stopping_for: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRows:
    """All rows about one pool at one moment."""

    pool: GpuPool
    version: int
    now: int
    used_until: int
    weights: list[Weight]
    usage: dict[str, int]
    running: list[LiveLease]
    waiting: list[QueuedRequest]
    drains: list[Drain] = field(default_factory=list)


IS_DRAINING = (  # as in the index of what makes room for a request
    "r.state = 0 AND r.stopping_for <> 0 AND r.expires_at > (SELECT ledger_now())"
)
ITS_POOL = (
    f"p.pool_id <> {NO_POOL} AND p.gpu_type = q.command->>'gpu_type'"
    " AND p.region = q.command->>'region'"
)


async def read_pool_rows(db: Connection, pool_id: int) -> PoolRows | None:
    """The rows of a pool; the caller's transaction makes them rows of one moment."""
    row = await db.fetchrow(
        "SELECT version, used_until, ledger_now() AS now FROM pool_dispatch WHERE pool_id = $1",
        pool_id,
    )
    found = await db.fetchrow(f"{READ} WHERE pool_id = $1", pool_id)
    if row is None or found is None:
        return None
    pool = GpuPool(**found)
    usage = await db.fetch(
        "SELECT path, floor(usage)::text AS usage FROM pool_usage WHERE pool_id = $1",
        pool_id,
    )
    return PoolRows(
        pool=pool,
        version=row["version"],
        now=row["now"],
        used_until=row["used_until"],
        weights=await list_weights(db, pool_id),
        usage={each["path"]: int(each["usage"]) for each in usage},
        running=await _running(db, pool) if pool.gates else [],
        waiting=await _waiting(db, pool_id),
        drains=await _drains(db, pool),
    )


async def _running(db: Connection, pool: GpuPool) -> list[LiveLease]:
    rows = await db.fetch(
        "SELECT r.org_id, r.reservation_id, r.account, r.milli_gpus,"
        " coalesce(div(q.cpus::numeric * r.milli_gpus + q.milli_gpus - 1,"
        " q.milli_gpus)::bigint, 0),"
        " coalesce(div(q.memory::numeric * r.milli_gpus + q.milli_gpus - 1,"
        " q.milli_gpus)::bigint, 0),"
        " coalesce(q.priority, 0), coalesce(q.gang, ''), r.admitted_at,"
        " coalesce(q.expected_ms, 0), coalesce(q.preemptible, true), r.expires_at, r.stopping_at,"
        " coalesce(q.overtook, false)"
        " FROM reservations r LEFT JOIN queue q ON q.org_id = r.org_id"
        " AND q.reservation_id = r.reservation_id AND q.reservation_id <> 0"
        " WHERE r.gpu_type = $1 AND r.region = $2 AND r.state = 0",
        pool.gpu_type,
        pool.region,
    )
    return [LiveLease(*row) for row in rows]


async def _drains(db: Connection, pool: GpuPool) -> list[Drain]:
    """Leases that drain for a request; for the pseudo-pool, leases of types without a pool."""
    rows = await db.fetch(
        f"SELECT r.org_id, r.reservation_id, r.stopping_for FROM reservations r WHERE {IS_DRAINING}"  # noqa: S608  # constant texts only
        " AND CASE $1 WHEN '' THEN NOT EXISTS (SELECT FROM pools p"
        " WHERE p.gpu_type = r.gpu_type AND p.region = r.region)"
        " ELSE r.gpu_type = $1 AND r.region = $2 END",
        pool.gpu_type,
        pool.region,
    )
    return [Drain(*row) for row in rows]


async def _waiting(db: Connection, pool_id: int) -> list[QueuedRequest]:
    """The waiting requests; the pseudo-pool has none whose type has a pool by now."""
    rows = await db.fetch(
        f"SELECT {ROW} FROM"  # noqa: S608  # columns
        " (SELECT *, row_number() OVER (PARTITION BY account ORDER BY state DESC, priority DESC,"
        " queue_id) AS place FROM queue q WHERE pool_id = $1"
        f" AND {IS_OPEN} AND (pool_id <> {NO_POOL}"
        f" OR NOT EXISTS (SELECT FROM pools p WHERE {ITS_POOL}))) AS q"
        " ORDER BY q.state DESC, q.place, q.queue_id LIMIT $2",
        pool_id,
        WAITING_MAX,
    )
    return [QueuedRequest(*row) for row in rows]


async def lapsed_in(db: Connection, pool: GpuPool, *, limit: int) -> list[Key]:
    """(org, payer) of leases that have lapsed and still count as running."""
    rows = await db.fetch(
        "SELECT DISTINCT r.org_id, r.payer_id FROM reservations r, ledger_now() AS now"
        " WHERE r.gpu_type = $1 AND r.region = $2 AND r.state = 0 AND r.expires_at <= now"
        " ORDER BY 1, 2 LIMIT $3",
        pool.gpu_type,
        pool.region,
        limit,
    )
    return [(row["org_id"], row["payer_id"]) for row in rows]


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot and its decision, both as JSON."""

    taken_at: int
    snapshot: bytes
    decision: bytes


async def keep_snapshot(
    db: Connection, pool_id: int, *, taken_at: int, snapshot: bytes, decision: bytes
) -> None:
    """Store a decision; older ones are deleted except the last few."""
    await db.execute(
        "WITH kept AS (INSERT INTO pool_snapshots (pool_id, taken_at, snapshot, decision)"
        " VALUES ($1, $2, $3, $4)) DELETE FROM pool_snapshots WHERE pool_id = $1"
        " AND snapshot_id <= (SELECT snapshot_id FROM pool_snapshots"
        " WHERE pool_id = $1 ORDER BY snapshot_id DESC OFFSET $5 LIMIT 1)",
        pool_id,
        taken_at,
        zlib.compress(snapshot, 1),
        zlib.compress(decision, 1),
        SNAPSHOTS_KEPT - 1,
    )


async def latest_snapshot(db: Connection, pool_id: int) -> KeptSnapshot | None:
    """The last stored decision."""
    row = await db.fetchrow(
        "SELECT taken_at, snapshot, decision FROM pool_snapshots"
        " WHERE pool_id = $1 ORDER BY snapshot_id DESC LIMIT 1",
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
    """Replace the past use, unless another dispatcher has counted since; whether it was done."""
    async with db.transaction():
        moved = await db.fetchval(
            "UPDATE pool_dispatch SET used_until = $3 WHERE pool_id = $1"
            " AND used_until = $2 RETURNING 1",
            pool_id,
            since,
            until,
        )
        if moved is None:
            return False
        await db.execute("DELETE FROM pool_usage WHERE pool_id = $1", pool_id)
        await db.execute(
            "INSERT INTO pool_usage (pool_id, path, usage)"
            " SELECT $1, x.path, x.usage::numeric"
            " FROM unnest($2::text[], $3::text[]) AS x(path, usage)",
            pool_id,
            list(usage),
            [str(each) for each in usage.values()],
        )
    return True
