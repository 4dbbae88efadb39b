"""The rows of the queue: requests until they are admitted, canceled, expired or refused.

Owns: the row of a queued request, which all rooms share, and the reads and writes of callers.
Must not: decide, or admit requests (store.dispatch.cycle claims room).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec

from gpucredits.core.bounds import NEVER_US
from gpucredits.core.command import Reserve
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors
from gpucredits.store.database.where import Where

CHANNEL: Final = "gpucredits_queue"  # something about those who wait has changed

Key = tuple[int, int]  # org, number


class QueueState(IntEnum):
    """The state of a request."""

    WAITING = 0
    ADMITTING = 1
    ADMITTED = 2
    CANCELED = 3
    EXPIRED = 4
    REFUSED = 5

    @property
    def is_open(self) -> bool:
        """Whether the request may still be admitted."""
        return self < QueueState.ADMITTED


IS_WAITING: Final = f"state = {QueueState.WAITING:d}"
IS_ADMITTING: Final = f"state = {QueueState.ADMITTING:d}"
IS_OPEN: Final = f"state < {QueueState.ADMITTED:d}"  # as in the indexes of those who wait


class QueuedRequest(NamedTuple):
    """A row of the queue: the request, its state, and its last place and reason.

    The fields are the columns of the table, in order. A change is a copy (``_replace``), which a
    function of this room writes.
    """

    org_id: int
    queue_id: int
    pool_id: int
    account: str
    command: str  # the fields of the reserve as JSON
    milli_gpus: int
    cpus: int
    memory: int
    priority: int
    gang: str
    gang_size: int
    expected_ms: int
    preemptible: bool
    is_patient: bool
    allow_partial: bool
    submitted_at: int
    deadline: int
    actor: str
    request_id: str
    state: int = QueueState.WAITING
    attempt: int = 0
    granted: int = 0
    overtook: bool = False
    milli_gpus_max: int = 0
    held_by: str = ""
    held_sentence: str = ""
    retry_at: int = 0
    retries: int = 0
    position: int = 0
    reason: str = ""
    resource: str = ""
    needed: int = 0
    available: int = 0
    behind: str = ""
    starts_at: int = 0
    reservation_id: int = 0
    ended_at: int = 0
    outcome: bytes | None = None
    read_at: int = 0  # not a column: the clock when the row was read

    @property
    def key(self) -> Key:
        """The org and the number of the request."""
        return self.org_id, self.queue_id

    @property
    def reserve(self) -> Reserve:
        """The reserve that was asked for."""
        return msgspec.json.decode(self.command, type=Reserve)

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed, and the row does not say so yet."""
        return self.state == QueueState.WAITING and self.deadline <= self.read_at


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    """Which requests to list, the latest first; no org means all of them."""

    org_id: int | None = None
    account: str = ""
    pool: tuple[str, str] | None = None
    states: tuple[int, ...] = ()
    before: int = NEVER_US
    limit: int = 100


_COLUMNS: Final = QueuedRequest._fields[:-1]
ROW: Final = ", ".join(
    "q.command::text" if name == "command" else f"q.{name}" for name in _COLUMNS
)  # a row of ``queue q``, for QueuedRequest
READ: Final = f"SELECT {ROW}, now FROM queue q CROSS JOIN ledger_now() AS now"  # noqa: S608  # columns
_NEW: Final = [  # what a request comes with
    name for name in _COLUMNS[: _COLUMNS.index("state")] if name not in ("queue_id", "submitted_at")
]
INSERT: Final = (
    f"INSERT INTO queue ({', '.join(_NEW)}, submitted_at) SELECT "  # noqa: S608  # columns
    + ", ".join(
        {
            "command": f"${number}::text::jsonb",
            "deadline": f"CASE WHEN ${number}::bigint > 0 THEN ${number}"
            f" ELSE least(now + ${len(_NEW) + 1}::bigint, {NEVER_US}) END",
        }.get(name, f"${number}")
        for number, name in enumerate(_NEW, start=1)
    )
    + ", now FROM ledger_now() AS now RETURNING queue_id"
)


async def insert(db: Connection, new: QueuedRequest, *, patience_us: int) -> int:
    """Insert a request that waits until its deadline, or at most a given time; its number."""
    values = (getattr(new, name) for name in _NEW)
    number: int = await db.fetchval(INSERT, *values, patience_us)
    return number


async def count_open(db: Connection, *, org_id: int, pool_id: int, most: int) -> int:
    """The number of an org's requests that wait in a pool; counting stops at ``most``."""
    number: int = await db.fetchval(
        "SELECT count(*) FROM (SELECT FROM queue WHERE pool_id = $1 AND org_id = $2"  # noqa: S608  # constant texts only
        f" AND {IS_OPEN} LIMIT $3) AS few",
        pool_id,
        org_id,
        most,
    )
    return number


async def depth(db: Connection | Pool) -> int:
    """The number of requests that wait for room in a pool."""
    with driver_errors():
        count: int = await db.fetchval(f"SELECT count(*) FROM queue WHERE {IS_OPEN}")  # noqa: S608  # constant texts only
    return count


async def find(db: Connection, keys: Sequence[Key]) -> dict[Key, QueuedRequest]:
    """Requests by (org, number)."""
    orgs, numbers = zip(*keys, strict=True) if keys else ((), ())
    rows = await db.fetch(
        f"{READ} JOIN unnest($1::bigint[], $2::bigint[]) AS w(org_id, queue_id)"
        " ON w.org_id = q.org_id AND w.queue_id = q.queue_id",
        orgs,
        numbers,
    )
    return {(row[0], row[1]): QueuedRequest(*row) for row in rows}


async def page(db: Connection, wanted: QueueFilter) -> list[QueuedRequest]:
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
    return [QueuedRequest(*row) for row in rows]


async def close(db: Connection, key: Key, state: QueueState, outcome: bytes) -> bool:
    """End a waiting request and its gang; gangs of one name form in the order of arrival.

    False if the request has ended already, or is being admitted.
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
        "SELECT q.org_id, q.queue_id FROM queue q"  # noqa: S608  # constant texts only
        f" WHERE NOT q.{IS_OPEN} AND q.ended_at < (SELECT ledger_now()) - $1"
        " AND NOT EXISTS (SELECT FROM reservations r WHERE r.org_id = q.org_id"
        " AND r.reservation_id = q.reservation_id AND r.state = 0)"
        " ORDER BY q.ended_at LIMIT $2",
        older_us,
        limit,
    )
    if rows:
        await db.execute(
            "DELETE FROM queue q USING unnest($1::bigint[], $2::bigint[]) AS old(org_id, queue_id)"
            " WHERE q.org_id = old.org_id AND q.queue_id = old.queue_id",
            *zip(*rows, strict=True),
        )
    return len(rows)


async def tell(db: Connection) -> None:
    """Wake everybody who waits for news of a request."""
    await db.execute("SELECT pg_notify($1, '')", CHANNEL)
