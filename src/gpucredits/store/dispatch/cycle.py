"""The dispatcher's side of pools: the lease to dispatch, claims of room, and what was decided.

Owns: who dispatches a pool, and writing down what was decided. A claim succeeds only if nobody has
let anything in since the picture (store.picture) was taken.
Must not: decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch import pools
from gpucredits.store.dispatch.pool_rows import IS_DRAINING, ITS_POOL, Key
from gpucredits.store.dispatch.pools import NO_POOL
from gpucredits.store.dispatch.queue import IS_ADMITTING, IS_OPEN, IS_WAITING, QueueState


class DispatchLease(NamedTuple):
    """The right to dispatch a pool, as of when it was taken or renewed."""

    pool_id: int
    holder: str
    version: int


class Claimed(NamedTuple):
    """A request that has its room, on its way to the ledger."""

    org_id: int
    queue_id: int
    attempt: int
    granted: int
    account: str
    gang: str
    command: str
    gang_size: int
    is_patient: bool
    allow_partial: bool
    retries: int
    actor: str
    request_id: str

    @property
    def key(self) -> Key:
        """Its org and number."""
        return self.org_id, self.queue_id


class QueuePosition(NamedTuple):
    """What a request that waits is told."""

    org_id: int
    queue_id: int
    position: int
    reason: str
    resource: str
    needed: int
    available: int
    behind: str
    starts_at: int


class Return(NamedTuple):
    """A request that the ledger refused: which gate said no, and when to ask again."""

    org_id: int
    queue_id: int
    attempt: int
    held_by: str
    held_sentence: str
    wait_us: int
    gpus_max: int


CLAIMED = (
    "q.org_id, q.queue_id, q.attempt, q.granted, q.account, q.gang, q.command::text,"
    " q.gang_size, q.is_patient, q.allow_partial, q.retries, q.actor, q.request_id"
)


# What a gate's no leaves behind ($4 to $7 of a Return): the more often, the longer until it is
# asked again, ten seconds at the most.
HELD = (
    "held_by = $4, held_sentence = $5, retries = retries + 1,"
    " retry_at = ledger_now() + least($6::bigint << least(retries, 4), 10000000), gpus_max = $7"
)


async def pools_with_work(db: Connection, *, usage_every_us: int) -> list[int]:
    """Pools in which somebody waits or work makes room, or whose past use is to be counted."""
    rows = await db.fetch(
        "SELECT p.pool_id FROM pools p JOIN pool_dispatch d"  # noqa: S608  # constant texts only
        " ON d.org_id = p.org_id AND d.pool_id = p.pool_id WHERE EXISTS"
        f" (SELECT FROM queue q WHERE q.pool_id = p.pool_id AND q.{IS_OPEN})"
        f" OR EXISTS (SELECT FROM reservations r WHERE {IS_DRAINING}"
        " AND r.gpu_type = p.gpu_type AND r.region = p.region)"
        f" OR (p.pool_id = {NO_POOL} AND EXISTS (SELECT FROM reservations r WHERE {IS_DRAINING}"
        " AND NOT EXISTS (SELECT FROM pools o WHERE o.org_id = 0 AND o.gpu_type = r.gpu_type"
        " AND o.region = r.region)))"
        " OR (p.half_life_ms > 0 AND d.used_until <= (SELECT ledger_now()) - $1)"
        " ORDER BY p.pool_id",
        usage_every_us,
    )
    return [row["pool_id"] for row in rows]


async def move_to_pools(db: Connection) -> None:
    """Let those who wait without a pool wait in theirs, where there is one now.

    Who is being let in goes along: its room counts.
    """
    moved: list[Any] = await db.fetch(
        "UPDATE queue q SET pool_id = p.pool_id FROM pools p"  # noqa: S608  # constant texts only
        f" WHERE q.pool_id = {NO_POOL} AND q.{IS_OPEN} AND {ITS_POOL} RETURNING 1"
    )
    if moved:
        await pools.ring(db)


async def take_lease(
    db: Connection, pool_id: int, holder: str, *, lease_us: int
) -> DispatchLease | None:
    """Take or renew the right to dispatch a pool; None while another has it."""
    version = await db.fetchval(
        "UPDATE pool_dispatch d SET holder = $2, held_until = now + $3"
        " FROM ledger_now() AS now WHERE d.org_id = 0 AND d.pool_id = $1"
        " AND (d.holder = $2 OR d.held_until <= now) RETURNING d.version",
        pool_id,
        holder,
        lease_us,
    )
    return None if version is None else DispatchLease(pool_id, holder, version)


async def drop_leases(db: Connection, holder: str) -> None:
    """Give every pool back, so that another need not wait."""
    await db.execute(
        "UPDATE pool_dispatch SET holder = '', held_until = 0 WHERE org_id = 0 AND holder = $1",
        holder,
    )
    await pools.ring(db)


async def holder_of(db: Connection, pool_id: int) -> str:
    """Who dispatches a pool; empty when nobody does."""
    holder: str | None = await db.fetchval(
        "SELECT holder FROM pool_dispatch WHERE org_id = 0 AND pool_id = $1"
        " AND held_until > ledger_now()",
        pool_id,
    )
    return holder or ""


async def expire(db: Connection, pool_id: int, outcome: bytes) -> int:
    """End the requests whose time to wait is over; how many."""
    rows: list[Any] = await db.fetch(
        "UPDATE queue SET state = $3, ended_at = deadline, outcome = $2"  # noqa: S608  # constant texts only
        f" FROM ledger_now() AS now WHERE pool_id = $1 AND {IS_WAITING} AND deadline <= now"
        " RETURNING 1",
        pool_id,
        outcome,
        int(QueueState.EXPIRED),
    )
    return len(rows)


async def claim(
    db: Connection, lease: DispatchLease, chosen: Sequence[tuple[int, int, int, bool]]
) -> list[Claimed] | None:
    """Give requests their room; None when the picture is out of date.

    Each is (org, number, GPUs, whether it overtakes somebody who waits).

    Whoever was canceled or has waited too long in the meantime is not among those claimed.
    """
    orgs, numbers, granted, overtook = zip(*chosen, strict=True)
    rows = await db.fetch(  # the only names in the text are those of columns
        "WITH moved AS (UPDATE pool_dispatch SET version = new_version() WHERE org_id = 0"  # noqa: S608
        " AND pool_id = $1 AND version = $2 AND holder = $3 RETURNING 1),"
        f" claimed AS (UPDATE queue q SET {IS_ADMITTING}, attempt = q.attempt + 1,"
        " granted = x.granted, overtook = x.overtook"
        " FROM unnest($4::int[], $5::bigint[], $6::bigint[], $7::boolean[])"
        " AS x(org_id, queue_id, granted, overtook), moved"
        f" WHERE q.org_id = x.org_id AND q.queue_id = x.queue_id AND q.{IS_WAITING}"
        f" AND q.deadline > ledger_now() RETURNING {CLAIMED}) "
        "SELECT (SELECT count(*) FROM moved), c.* FROM (SELECT 1) AS one LEFT JOIN claimed c"
        " ON true",
        *(lease.pool_id, lease.version, lease.holder),
        *(orgs, numbers, granted, overtook),
    )
    if not rows[0][0]:
        return None
    return [Claimed(*row[1:]) for row in rows if row[1] is not None]


async def claimed_before(db: Connection, pool_id: int, *, limit: int) -> list[Claimed]:
    """Requests that were given room and of which nobody has said how it ended."""
    rows = await db.fetch(
        f"SELECT {CLAIMED} FROM queue q WHERE q.pool_id = $1 AND q.{IS_ADMITTING}"  # noqa: S608  # columns
        " ORDER BY q.org_id, q.queue_id LIMIT $2",
        pool_id,
        limit,
    )
    return [Claimed(*row) for row in rows]


async def finish(db: Connection, ended: Sequence[tuple[int, int, int, int, int, bytes]]) -> None:
    """Write down (org, number, attempt, state, reservation, outcome) of claims that have ended."""
    await db.executemany(
        "UPDATE queue SET state = $4, reservation_id = $5, outcome = $6, ended_at = ledger_now(),"  # noqa: S608  # constant texts only
        " held_by = '', held_sentence = '', position = 0"
        f" WHERE org_id = $1 AND queue_id = $2 AND attempt = $3 AND {IS_ADMITTING}",
        ended,
    )


async def give_back(db: Connection, returned: Sequence[Return]) -> None:
    """Let requests that the ledger refused wait on; the longer the more often it said no."""
    await db.executemany(
        f"UPDATE queue SET {IS_WAITING}, granted = 0, {HELD}"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND attempt = $3 AND {IS_ADMITTING}",
        returned,
    )


async def refuse(db: Connection, refused: Sequence[tuple[int, int, bytes]]) -> None:
    """Answer those who do not wait: (org, number, outcome)."""
    await db.executemany(
        "UPDATE queue SET state = $4, outcome = $3, ended_at = ledger_now(), position = 0"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND {IS_WAITING}",
        [(*each, int(QueueState.REFUSED)) for each in refused],
    )


async def place(db: Connection, places: Sequence[QueuePosition]) -> None:
    """Tell those who wait where they stand."""
    if not places:
        return
    await db.execute(
        "UPDATE queue q SET position = x.position, reason = x.reason, resource = x.resource,"  # noqa: S608  # constant texts only
        " needed = x.needed, available = x.available, behind = x.behind, starts_at = x.starts_at"
        " FROM unnest($1::int[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::bigint[],"
        " $7::bigint[], $8::text[], $9::bigint[]) AS x(org_id, queue_id, position, reason,"
        " resource, needed, available, behind, starts_at)"
        f" WHERE q.org_id = x.org_id AND q.queue_id = x.queue_id AND q.{IS_WAITING}",
        *zip(*places, strict=True),
    )
