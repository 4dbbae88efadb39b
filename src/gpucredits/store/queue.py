"""Waiting requests at rest: from being asked to being admitted, canceled, expired or refused.

Owns: the rows of queue, as their callers see them.
Must not: decide, or let anything in (store.dispatch claims room).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Final

from gpucredits.core.bounds import NEVER_US
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import driver_errors
from gpucredits.store.where import Where

CHANNEL: Final = "gpucredits_queue"  # something about those who wait has changed


class QueueState(IntEnum):
    """Where a request stands."""

    WAITING = 0
    ADMITTING = 1
    ADMITTED = 2
    CANCELED = 3
    EXPIRED = 4
    REFUSED = 5

    @property
    def is_open(self) -> bool:
        """Whether it may still be let in."""
        return self < QueueState.ADMITTED


IS_WAITING: Final = f"state = {QueueState.WAITING:d}"
IS_ADMITTING: Final = f"state = {QueueState.ADMITTING:d}"
IS_OPEN: Final = f"state < {QueueState.ADMITTED:d}"  # as in the indexes of those who wait


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTicket:
    """A request that is to wait; ``command`` has the fields of its reserve as JSON."""

    org_id: int
    pool_id: int
    account: str
    command: str
    gpus: int
    cpus: int = 0
    memory: int = 0
    priority: int = 0
    gang: str = ""
    gang_size: int = 1
    expected_ms: int = 0
    preemptible: bool = True
    is_patient: bool = True
    allow_partial: bool = False
    actor: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A request with its place in the queue as it was last decided."""

    org_id: int
    queue_id: int
    pool_id: int
    gpu_type: str
    region: str
    account: str
    job_id: str
    gpus: int
    granted: int
    priority: int
    gang: str
    gang_size: int
    expected_ms: int
    preemptible: bool
    is_patient: bool
    allow_partial: bool
    submitted_at: int
    deadline: int
    state: int
    held_by: str
    held_sentence: str
    position: int
    reason: str
    resource: str
    needed: int
    available: int
    behind: str
    starts_at: int
    reservation_id: int
    ended_at: int
    outcome: bytes | None
    is_late: bool  # its deadline has passed, and nobody has written down that it expired


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketFilter:
    """Which requests to list, the latest first; no org means all of them."""

    org_id: int | None = None
    account: str = ""
    pool: tuple[str, str] | None = None
    states: tuple[int, ...] = ()
    before: int = NEVER_US
    limit: int = 100


_PLAIN: Final = [
    name
    for name in (field.name for field in fields(Ticket))
    if name not in ("gpu_type", "region", "job_id", "is_late")
]
READ: Final = (
    "SELECT "  # noqa: S608  # names of columns
    + ", ".join(f"q.{name}" for name in _PLAIN)
    + ", q.command->>'gpu_type' AS gpu_type, q.command->>'region' AS region,"
    f" q.command->>'job_id' AS job_id, q.{IS_WAITING} AND q.deadline <= now AS is_late"
    " FROM queue q CROSS JOIN ledger_now() AS now"
)
_NEW: Final = [field.name for field in fields(NewTicket)]
INSERT: Final = (
    f"INSERT INTO queue ({', '.join(_NEW)}, submitted_at, deadline) SELECT "  # noqa: S608  # columns
    + ", ".join(
        f"${number}::text::jsonb" if name == "command" else f"${number}"
        for number, name in enumerate(_NEW, start=1)
    )
    + f", now, CASE WHEN ${len(_NEW) + 2}::bigint > 0 THEN ${len(_NEW) + 2}"
    f" ELSE least(now + ${len(_NEW) + 1}::bigint, {NEVER_US}) END"
    " FROM ledger_now() AS now RETURNING queue_id"
)


async def insert(db: Connection, new: NewTicket, *, patience_us: int, deadline: int = 0) -> int:
    """Let a request wait until its deadline, or without one at most so long; its number."""
    values = (getattr(new, name) for name in _NEW)
    number: int = await db.fetchval(INSERT, *values, patience_us, deadline)
    return number


async def count_open(db: Connection, *, org_id: int, pool_id: int, most: int) -> int:
    """How many requests of an org wait in a pool, counted no further than ``most``."""
    number: int = await db.fetchval(
        "SELECT count(*) FROM (SELECT FROM queue WHERE pool_id = $1 AND org_id = $2"  # noqa: S608  # constant texts only
        f" AND {IS_OPEN} LIMIT $3) AS few",
        pool_id,
        org_id,
        most,
    )
    return number


async def depth(db: Connection | Pool) -> int:
    """How many requests of all orgs wait for room in a pool."""
    with driver_errors():
        count: int = await db.fetchval(f"SELECT count(*) FROM queue WHERE {IS_OPEN}")  # noqa: S608  # constant texts only
    return count


async def find(db: Connection, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Ticket]:
    """Requests by (org, number)."""
    orgs, numbers = zip(*keys, strict=True) if keys else ((), ())
    rows = await db.fetch(
        f"{READ} JOIN unnest($1::int[], $2::bigint[]) AS w(org_id, queue_id)"
        " ON w.org_id = q.org_id AND w.queue_id = q.queue_id",
        orgs,
        numbers,
    )
    return {(row["org_id"], row["queue_id"]): Ticket(**row) for row in rows}


async def page(db: Connection, wanted: TicketFilter) -> list[Ticket]:
    """Requests, the latest first; one that waited beyond its deadline counts as expired."""
    where = Where()
    where.add("q.queue_id < {}", wanted.before)
    if wanted.org_id is not None:
        where.add("q.org_id = {}", wanted.org_id)
    if wanted.account:
        where.under("q.account", wanted.account)
    if wanted.pool is not None:
        where.add("q.command->>'gpu_type' = {} AND q.command->>'region' = {}", *wanted.pool)
    if wanted.states:
        where.add(
            f"CASE WHEN q.{IS_WAITING} AND q.deadline <= now THEN {{}} ELSE q.state END"
            " = ANY({}::smallint[])",
            int(QueueState.EXPIRED),
            list(wanted.states),
        )
    text = f"{READ} WHERE [where] ORDER BY q.queue_id DESC LIMIT [limit]"
    rows = await db.fetch(where.into(text, limit=where.value(wanted.limit)), *where.values)
    return [Ticket(**row) for row in rows]


async def close(db: Connection, key: tuple[int, int], state: QueueState, outcome: bytes) -> bool:
    """End a request that still waits, and its gang: of those with one name who came first is first.

    False when there is nothing to end: it has ended, or is being let in.
    """
    closed = await db.fetch(
        "WITH named AS (SELECT q.queue_id,"  # noqa: S608  # constant texts only
        " (row_number() OVER (ORDER BY q.submitted_at, q.queue_id)"
        " - 1) / q.gang_size AS run FROM queue q JOIN queue one ON one.org_id = q.org_id"
        " AND (one.queue_id = q.queue_id OR (one.gang <> '' AND one.gang = q.gang"
        " AND one.gang_size = q.gang_size AND one.account = q.account"
        " AND one.pool_id = q.pool_id)) WHERE one.org_id = $1 AND one.queue_id = $2"
        f" AND q.{IS_WAITING})"
        " UPDATE queue q SET state = $3, outcome = $4, ended_at = ledger_now() FROM named n"
        f" WHERE q.org_id = $1 AND q.queue_id = n.queue_id AND q.{IS_WAITING}"
        " AND n.run = (SELECT run FROM named WHERE queue_id = $2) RETURNING q.queue_id",
        *key,
        int(state),
        outcome,
    )
    return any(row["queue_id"] == key[1] for row in closed)


async def forget_ended(db: Connection, *, older_us: int, limit: int) -> int:
    """Delete requests that ended long ago, except those whose leases still run; how many."""
    rows: list[Any] = await db.fetch(
        "DELETE FROM queue WHERE ctid = ANY (ARRAY(SELECT q.ctid FROM queue q"  # noqa: S608  # constant texts only
        f" WHERE NOT q.{IS_OPEN} AND q.ended_at < (SELECT ledger_now()) - $1"
        " AND NOT EXISTS (SELECT FROM reservations r WHERE r.org_id = q.org_id"
        " AND r.reservation_id = q.reservation_id AND r.state = 0)"
        " ORDER BY q.ended_at LIMIT $2)) RETURNING 1",
        older_us,
        limit,
    )
    return len(rows)


async def tell(db: Connection) -> None:
    """Wake everybody who waits for news of a request."""
    await db.execute("SELECT pg_notify($1, '')", CHANNEL)
