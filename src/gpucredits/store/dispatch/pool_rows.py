"""A pool as a decision sees it: what runs, who waits and how it is shared, all of one moment.

Owns: reading everything a decision needs, and which leases of a pool have lapsed.
Must not: write, or decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch import pools
from gpucredits.store.dispatch.pools import NO_POOL, GpuPool, Weight
from gpucredits.store.dispatch.queue import IS_OPEN

WAITING_MAX: Final = 50_000  # looked at in one cycle; of each account its first come first

Key = tuple[int, int]  # org, number


class OpenTicket(NamedTuple):
    """What a decision needs to know of a request, and what was last said of it."""

    org_id: int
    queue_id: int
    account: str
    gpus: int
    cpus: int
    memory: int
    priority: int
    gang: str
    gang_size: int
    expected_ms: int
    is_patient: bool
    allow_partial: bool
    gpus_max: int
    held_by: str
    retry_at: int
    submitted_at: int
    state: int
    granted: int
    position: int
    reason: str
    needed: int
    available: int
    behind: str
    starts_at: int

    @property
    def key(self) -> Key:
        """Its org and number."""
        return self.org_id, self.queue_id


class LiveLease(NamedTuple):
    """What runs in a pool; what it was asked with is known if it came through the queue."""

    org_id: int
    reservation_id: int
    account: str
    gpus: int
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
    """Everything about one pool at one moment."""

    pool: GpuPool
    version: int
    now: int
    used_until: int
    weights: list[Weight]
    usage: dict[str, int]
    running: list[LiveLease]
    waiting: list[OpenTicket]
    drains: list[Drain] = field(default_factory=list)


_OPEN = ", ".join(OpenTicket._fields)
IS_DRAINING = (  # as in the index of what makes room for a request
    "r.state = 0 AND r.stopping_for <> 0 AND r.expires_at > (SELECT ledger_now())"
)
ITS_POOL = (
    f"p.org_id = 0 AND p.pool_id <> {NO_POOL} AND p.gpu_type = q.command->>'gpu_type'"
    " AND p.region = q.command->>'region'"
)


async def take_picture(db: Connection, pool_id: int) -> PoolRows | None:
    """The pool as it is; the caller has a transaction in which everything is of one moment."""
    row = await db.fetchrow(
        "SELECT version, used_until, ledger_now() AS now FROM pool_dispatch"
        " WHERE org_id = 0 AND pool_id = $1",
        pool_id,
    )
    found = await db.fetchrow(f"{pools.READ} AND pool_id = $1", pool_id)
    if row is None or found is None:
        return None
    pool = GpuPool(**found)
    usage = await db.fetch(
        "SELECT path, floor(usage)::text AS usage FROM pool_usage WHERE org_id = 0"
        " AND pool_id = $1",
        pool_id,
    )
    return PoolRows(
        pool=pool,
        version=row["version"],
        now=row["now"],
        used_until=row["used_until"],
        weights=await pools.list_weights(db, pool_id),
        usage={each["path"]: int(each["usage"]) for each in usage},
        running=await _running(db, pool) if pool.gates else [],
        waiting=await _waiting(db, pool_id),
        drains=await _drains(db, pool),
    )


async def _running(db: Connection, pool: GpuPool) -> list[LiveLease]:
    rows = await db.fetch(
        "SELECT r.org_id, r.reservation_id, r.account, r.gpu_count,"
        " coalesce((q.cpus * r.gpu_count + q.gpus - 1) / q.gpus, 0),"
        " coalesce((q.memory * r.gpu_count + q.gpus - 1) / q.gpus, 0),"
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
    """Leases that make room for a request; without a pool, those of types that have none."""
    rows = await db.fetch(
        f"SELECT r.org_id, r.reservation_id, r.stopping_for FROM reservations r WHERE {IS_DRAINING}"  # noqa: S608  # constant texts only
        " AND CASE $1 WHEN '' THEN NOT EXISTS (SELECT FROM pools p WHERE p.org_id = 0"
        " AND p.gpu_type = r.gpu_type AND p.region = r.region)"
        " ELSE r.gpu_type = $1 AND r.region = $2 END",
        pool.gpu_type,
        pool.region,
    )
    return [Drain(*row) for row in rows]


async def _waiting(db: Connection, pool_id: int) -> list[OpenTicket]:
    """Those who wait; whoever has a pool by now does not wait without one."""
    rows = await db.fetch(
        f"SELECT {_OPEN} FROM"  # noqa: S608  # columns
        " (SELECT *, row_number() OVER (PARTITION BY account ORDER BY state DESC, priority DESC,"
        " queue_id) AS place FROM queue q WHERE pool_id = $1"
        f" AND {IS_OPEN} AND (pool_id <> {NO_POOL}"
        f" OR NOT EXISTS (SELECT FROM pools p WHERE {ITS_POOL}))) AS numbered"
        " ORDER BY state DESC, place, queue_id LIMIT $2",
        pool_id,
        WAITING_MAX,
    )
    return [OpenTicket(*row) for row in rows]


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
