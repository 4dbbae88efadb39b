"""The dispatcher's side of the queue: its lease, claims of room, and the outcomes of requests.

Owns: the right to dispatch a pool, and writing down decisions and the results of dry runs. A claim
succeeds only if no dispatcher has let anything in since the pool's rows (store.dispatch.pools) were
read.
Must not: decide, or ask the ledger (service.dispatch.admission does).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch import pools
from gpucredits.store.dispatch.pools import IS_DRAINING, ITS_POOL, NO_POOL
from gpucredits.store.dispatch.queue import (
    IS_ADMITTING,
    IS_OPEN,
    IS_WAITING,
    ROW,
    Key,
    QueuedRequest,
    QueueState,
)

RETRY_US: Final = 1_000_000  # until a gate that said no is asked again, the first time


class DispatchLease(NamedTuple):
    """The right to dispatch a pool, as of when it was taken or renewed."""

    pool_id: int
    holder: str
    version: int


# What a refusal by a gate writes ($4 to $6 of a row). After each refusal the wait until the gate is
# asked again doubles, up to ten seconds. A request that no gate holds need not wait for its turn.
_HELD_VALUES = attrgetter(
    "org_id", "queue_id", "attempt", "held_by", "held_sentence", "milli_gpus_max"
)
_HELD = (
    "held_by = $4, held_sentence = $5, retries = retries + 1, retry_at = ledger_now()"
    f" + CASE $4 WHEN '' THEN 0 ELSE least({RETRY_US}::bigint << least(retries, 4), 10000000) END,"
    " milli_gpus_max = $6"
)


async def pools_with_work(db: Connection, *, usage_every_us: int) -> list[int]:
    """Pools with waiting requests or draining leases, or whose past use is to be counted."""
    rows = await db.fetch(
        "SELECT p.pool_id FROM pools p JOIN pool_dispatch d"  # noqa: S608  # constant texts only
        " ON d.pool_id = p.pool_id WHERE EXISTS"
        f" (SELECT FROM queue q WHERE q.pool_id = p.pool_id AND q.{IS_OPEN})"
        f" OR EXISTS (SELECT FROM reservations r WHERE {IS_DRAINING}"
        " AND r.gpu_type = p.gpu_type AND r.region = p.region)"
        f" OR (p.pool_id = {NO_POOL} AND EXISTS (SELECT FROM reservations r WHERE {IS_DRAINING}"
        " AND NOT EXISTS (SELECT FROM pools o WHERE o.gpu_type = r.gpu_type"
        " AND o.region = r.region)))"
        " OR (p.half_life_ms > 0 AND d.used_until <= (SELECT ledger_now()) - $1)"
        " ORDER BY p.pool_id",
        usage_every_us,
    )
    return [row["pool_id"] for row in rows]


async def move_to_pools(db: Connection) -> None:
    """Move requests that wait without a pool into their pool, where there is one now.

    Requests that are being admitted move too, since their room counts.
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
    """Take or renew the right to dispatch a pool; None while another dispatcher has it."""
    version = await db.fetchval(
        "UPDATE pool_dispatch d SET holder = $2, held_until = now + $3"
        " FROM ledger_now() AS now WHERE d.pool_id = $1"
        " AND (d.holder = $2 OR d.held_until <= now) RETURNING d.version",
        pool_id,
        holder,
        lease_us,
    )
    return None if version is None else DispatchLease(pool_id, holder, version)


async def drop_leases(db: Connection, holder: str) -> None:
    """Give up all pools of a holder, so that another dispatcher need not wait."""
    await db.execute(
        "UPDATE pool_dispatch SET holder = '', held_until = 0 WHERE holder = $1",
        holder,
    )
    await pools.ring(db)


async def holder_of(db: Connection, pool_id: int) -> str:
    """The holder of the right to dispatch a pool; empty if there is none."""
    holder: str | None = await db.fetchval(
        "SELECT holder FROM pool_dispatch WHERE pool_id = $1 AND held_until > ledger_now()",
        pool_id,
    )
    return holder or ""


async def expire(db: Connection, pool_id: int, outcome: bytes) -> int:
    """End the requests whose deadline is over; how many."""
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
    db: Connection, lease: DispatchLease, chosen: Sequence[QueuedRequest]
) -> list[QueuedRequest] | None:
    """Claim for requests the room ``granted`` to them; None if the decision is out of date.

    The claimed requests are returned, without requests that were canceled or expired meanwhile.
    """
    rows = await db.fetch(  # the only names in the text are those of columns
        "WITH moved AS (UPDATE pool_dispatch SET version = new_version()"  # noqa: S608
        " WHERE pool_id = $1 AND version = $2 AND holder = $3 RETURNING 1),"
        f" claimed AS (UPDATE queue q SET {IS_ADMITTING}, attempt = q.attempt + 1,"
        " granted = x.granted, overtook = x.overtook"
        " FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[])"
        " AS x(org_id, queue_id, granted, overtook), moved"
        f" WHERE q.org_id = x.org_id AND q.queue_id = x.queue_id AND q.{IS_WAITING}"
        f" AND q.deadline > (SELECT ledger_now()) RETURNING {ROW}) "
        "SELECT (SELECT count(*) FROM moved), c.* FROM (SELECT 1) AS one LEFT JOIN claimed c"
        " ON true",
        *(lease.pool_id, lease.version, lease.holder),
        *zip(*map(attrgetter("org_id", "queue_id", "granted", "overtook"), chosen), strict=True),
    )
    if not rows[0][0]:
        return None
    return [QueuedRequest(*row[1:]) for row in rows if row[1] is not None]


async def claimed_before(db: Connection, pool_id: int, *, limit: int) -> list[QueuedRequest]:
    """Claimed requests whose end has not been written down."""
    rows = await db.fetch(
        f"SELECT {ROW} FROM queue q WHERE q.pool_id = $1 AND q.{IS_ADMITTING}"  # noqa: S608  # columns
        " ORDER BY q.org_id, q.queue_id LIMIT $2",
        pool_id,
        limit,
    )
    return [QueuedRequest(*row) for row in rows]


async def finish(db: Connection, ended: Sequence[QueuedRequest]) -> None:
    """Write down the state, the lease and the outcome of claims that have ended."""
    values = attrgetter("org_id", "queue_id", "attempt", "state", "reservation_id", "outcome")
    await db.executemany(
        "UPDATE queue SET state = $4, reservation_id = $5, outcome = $6, ended_at = ledger_now(),"  # noqa: S608  # constant texts only
        " held_by = '', held_sentence = '', position = 0"
        f" WHERE org_id = $1 AND queue_id = $2 AND attempt = $3 AND {IS_ADMITTING}",
        [values(row) for row in ended],
    )


async def give_back(db: Connection, returned: Sequence[QueuedRequest]) -> None:
    """Let claimed requests that the ledger refused wait on, with the gate that holds them."""
    await db.executemany(
        f"UPDATE queue SET {IS_WAITING}, granted = 0, {_HELD}"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND attempt = $3 AND {IS_ADMITTING}",
        [_HELD_VALUES(row) for row in returned],
    )


async def hold(db: Connection, held: Sequence[QueuedRequest]) -> None:
    """Note the gate that holds each waiting request, found by a dry run."""
    await db.executemany(
        f"UPDATE queue SET {_HELD}"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND attempt = $3 AND {IS_WAITING}",
        [_HELD_VALUES(row) for row in held],
    )


async def probes(db: Connection, pool_id: int, *, each: int, limit: int) -> list[QueuedRequest]:
    """Requests held by another gate whose gate may be asked again, a few of each account."""
    rows = await db.fetch(
        f"SELECT {ROW} FROM (SELECT *, row_number() OVER (PARTITION BY account"  # noqa: S608  # columns
        " ORDER BY priority DESC, queue_id) AS place FROM queue WHERE pool_id = $1"
        f" AND {IS_WAITING} AND held_by <> '') AS q"
        " WHERE q.place <= $2 AND q.retry_at <= (SELECT ledger_now())"
        " ORDER BY q.retry_at LIMIT $3",
        pool_id,
        each,
        limit,
    )
    return [QueuedRequest(*row) for row in rows]


async def unhold(db: Connection, keys: Sequence[Key]) -> None:
    """Let requests and their gangs take part again, because their gate is open."""
    await db.executemany(
        "UPDATE queue q SET held_by = '', held_sentence = '', retries = 0, retry_at = 0"  # noqa: S608  # constant texts only
        " FROM queue one WHERE one.org_id = $1 AND one.queue_id = $2 AND q.org_id = one.org_id"
        f" AND q.pool_id = one.pool_id AND q.{IS_WAITING} AND (q.queue_id = one.queue_id"
        " OR (one.gang <> '' AND q.gang = one.gang AND q.account = one.account))",
        keys,
    )


async def put_off(db: Connection, keys: Sequence[Key], *, wait_us: int) -> None:
    """Put off asking about requests, so that others come first."""
    await db.executemany(
        "UPDATE queue SET retry_at = ledger_now() + $3"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND {IS_WAITING}",
        [(*key, wait_us) for key in keys],
    )


async def refuse(db: Connection, refused: Sequence[QueuedRequest]) -> None:
    """End waiting requests with their refusals."""
    values = attrgetter("org_id", "queue_id", "outcome")
    await db.executemany(
        "UPDATE queue SET state = $4, outcome = $3, ended_at = ledger_now(), position = 0"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND {IS_WAITING}",
        [(*values(row), int(QueueState.REFUSED)) for row in refused],
    )


async def place(db: Connection, placed: Sequence[QueuedRequest]) -> None:
    """Write down the places and reasons of waiting requests."""
    if not placed:
        return
    values = attrgetter(
        *("org_id", "queue_id", "position", "reason", "resource"),
        *("needed", "available", "behind", "starts_at"),
    )
    await db.execute(
        "UPDATE queue q SET position = x.position, reason = x.reason, resource = x.resource,"  # noqa: S608  # constant texts only
        " needed = x.needed, available = x.available, behind = x.behind, starts_at = x.starts_at"
        " FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::bigint[],"
        " $7::bigint[], $8::text[], $9::bigint[]) AS x(org_id, queue_id, position, reason,"
        " resource, needed, available, behind, starts_at)"
        f" WHERE q.org_id = x.org_id AND q.queue_id = x.queue_id AND q.{IS_WAITING}",
        *zip(*map(values, placed), strict=True),
    )
