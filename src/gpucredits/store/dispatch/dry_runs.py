"""Requests that are asked about without a trace: who they are, and what was found out.

Owns: holding those who wait for another gate than fair share, and letting them take part again.
Must not: ask (service.admitting does).
"""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch.cycle import CLAIMED, HELD, Claimed, Return
from gpucredits.store.dispatch.pool_rows import Key
from gpucredits.store.dispatch.queue import IS_WAITING


async def still_waiting(db: Connection, keys: Sequence[Key]) -> list[Claimed]:
    """Those of some requests that still wait, by org and number."""
    orgs, numbers = zip(*keys, strict=True) if keys else ((), ())
    rows = await db.fetch(
        f"SELECT {CLAIMED} FROM queue q JOIN unnest($1::int[], $2::bigint[])"  # noqa: S608  # columns
        " AS w(org_id, queue_id) ON w.org_id = q.org_id AND w.queue_id = q.queue_id"
        f" WHERE q.{IS_WAITING} ORDER BY q.org_id, q.queue_id",
        orgs,
        numbers,
    )
    return [Claimed(*row) for row in rows]


async def probes(db: Connection, pool_id: int, *, each: int, limit: int) -> list[Claimed]:
    """Requests that another gate held and that may be asked about again, few of each account."""
    rows = await db.fetch(
        f"SELECT {CLAIMED} FROM (SELECT *, row_number() OVER (PARTITION BY account"  # noqa: S608  # columns
        " ORDER BY priority DESC, queue_id) AS place FROM queue WHERE pool_id = $1"
        f" AND {IS_WAITING} AND held_by <> '') AS q"
        " WHERE q.place <= $2 AND q.retry_at <= (SELECT ledger_now())"
        " ORDER BY q.retry_at LIMIT $3",
        pool_id,
        each,
        limit,
    )
    return [Claimed(*row) for row in rows]


async def unhold(db: Connection, keys: Sequence[Key]) -> None:
    """Let requests, and the rest of their gangs, take part again: what held them is open."""
    await db.executemany(
        "UPDATE queue q SET held_by = '', held_sentence = '', retries = 0, retry_at = 0"  # noqa: S608  # constant texts only
        " FROM queue one WHERE one.org_id = $1 AND one.queue_id = $2 AND q.org_id = one.org_id"
        f" AND q.pool_id = one.pool_id AND q.{IS_WAITING} AND (q.queue_id = one.queue_id"
        " OR (one.gang <> '' AND q.gang = one.gang AND q.account = one.account))",
        keys,
    )


async def hold_on(db: Connection, held: Sequence[Return]) -> None:
    """Note that the gate is still closed, for the requests that were asked about."""
    await db.executemany(
        f"UPDATE queue SET {HELD}"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND attempt = $3 AND {IS_WAITING}",
        held,
    )


async def put_off(db: Connection, keys: Sequence[Key], *, wait_us: int) -> None:
    """Ask about requests later: others come first."""
    await db.executemany(
        "UPDATE queue SET retry_at = ledger_now() + $3"  # noqa: S608  # constant texts only
        f" WHERE org_id = $1 AND queue_id = $2 AND {IS_WAITING}",
        [(*key, wait_us) for key in keys],
    )
