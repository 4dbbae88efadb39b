"""The events of the outbox in their order of delivery, and the progress of each reader.

Owns: the events that are released to readers, the rows of event_consumers, and trimming behind the
slowest reader. The position of an event is its number. An event is released when every event with a
lower number is. So a reader at a position has seen every event before it.
Must not: deliver anything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session

COLUMNS: Final = (
    "c.org_id, c.name, c.position, c.moved_at,"
    " coalesce((SELECT d.path FROM org_directory d WHERE d.org_id = c.org_id), ''),"
    " CASE c.org_id WHEN 0 THEN (SELECT s.position FROM event_stream s)"
    " ELSE coalesce((SELECT o.event_id FROM outbox o WHERE o.org_id = c.org_id"
    " ORDER BY o.event_id DESC LIMIT 1), 0) END"
)
DRAWN: Final = "SELECT pg_sequence_last_value(pg_get_serial_sequence('outbox', 'event_id'))"
WRITERS: Final = (
    "SELECT array_agg(virtualtransaction) FROM pg_locks WHERE locktype = 'relation'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND relation = 'outbox'::regclass AND mode = 'RowExclusiveLock' AND granted"
)
LOOKS: Final = 20
BETWEEN_LOOKS_S: Final = 0.01
BUS: Final = "bus"  # the reader that publishes events on the bus; its org is the system


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event for delivery."""

    position: int
    org_id: int
    org: str
    event_id: int
    recorded_at: int
    type: str
    subject_id: int
    payload: str


@dataclass(frozen=True, slots=True)
class EventConsumer:
    """A reader of events, and the last position that it has handled.

    ``newest`` is the position of the newest event that is kept for it.
    """

    org_id: int
    name: str
    position: int
    moved_at: int
    org: str  # its path; empty for a reader of all
    newest: int = 0


async def release_events(pool: Pool) -> None:
    """Release the events that no event with a lower number can precede any more.

    A transaction draws a number while it holds a lock on the outbox. So once every holder has
    ended, each number drawn until then is stored, or never will be. One server looks at a time. If
    a transaction still runs after a few looks, the next call waits for it.
    """
    async with session(pool) as db, db.transaction():
        known = await db.fetchval("SELECT position FROM event_stream FOR UPDATE SKIP LOCKED")
        drawn = await db.fetchval(DRAWN)
        if known is None or drawn is None or drawn <= known:
            return
        writers = await db.fetchval(WRITERS)  # after the number was read
        for _ in range(LOOKS):
            if not writers:
                break
            await asyncio.sleep(BETWEEN_LOOKS_S)
            writers = await db.fetchval(f"{WRITERS} AND virtualtransaction = ANY ($1)", writers)
        if not writers:
            await db.execute(
                "UPDATE event_stream s SET position = coalesce((SELECT max(o.event_id)"
                " FROM outbox o WHERE o.event_id > $1 AND o.event_id <= $2), s.position)",
                known,
                drawn,
            )


async def last_position(db: Connection) -> int:
    """The position of the newest released event."""
    position: int = await db.fetchval("SELECT position FROM event_stream")
    return position


async def page(
    db: Connection, *, org_id: int | None, after: int, limit: int, kind: str | None = None
) -> list[StoredEvent]:
    """Events after a position in their order: those of one org, or of all."""
    rows = await db.fetch(
        "SELECT o.event_id AS position, o.org_id, coalesce(d.path, '') AS org, o.event_id,"
        " o.recorded_at, o.type, o.subject_id, o.payload::text AS payload"
        " FROM outbox o LEFT JOIN org_directory d ON d.org_id = o.org_id"
        " WHERE o.event_id > $1 AND o.event_id <= (SELECT position FROM event_stream)"
        " AND ($2::bigint IS NULL OR o.org_id = $2)"
        " AND ($4::text IS NULL OR o.type = $4 OR starts_with(o.type, $4 || '.'))"
        " ORDER BY o.event_id LIMIT $3",
        after,
        org_id,
        limit,
        kind,
    )
    return [StoredEvent(*row) for row in rows]


async def prepare_consumer(db: Connection, name: str) -> None:
    """Make the row of a reader of all orgs if it is missing, before the locking transaction.

    Another server that makes the same row would wait for that transaction.
    """
    await db.execute(
        "INSERT INTO event_consumers (org_id, name, position, moved_at)"
        " VALUES (0, $1, 0, ledger_now()) ON CONFLICT DO NOTHING",
        name,
    )


async def lock_consumer(db: Connection, name: str) -> int | None:
    """The position of a reader of all orgs, locked until the transaction ends.

    None if another server has it.
    """
    position: int | None = await db.fetchval(
        "SELECT position FROM event_consumers WHERE org_id = 0 AND name = $1"
        " FOR UPDATE SKIP LOCKED",
        name,
    )
    return position


async def set_consumer(db: Connection, org_id: int, name: str, position: int) -> EventConsumer:
    """Set the position of a reader; a new reader is made."""
    row = await db.fetchrow(
        "INSERT INTO event_consumers AS c (org_id, name, position, moved_at)"  # noqa: S608  # constant texts only
        " VALUES ($1, $2, $3, ledger_now()) ON CONFLICT (org_id, name) DO UPDATE"
        " SET position = excluded.position, moved_at = excluded.moved_at"
        f" RETURNING {COLUMNS}",
        org_id,
        name,
        position,
    )
    return EventConsumer(*row)


async def find_consumer(db: Connection, org_id: int, name: str) -> EventConsumer | None:
    """One reader of an org, or (org 0) of all."""
    row = await db.fetchrow(
        f"SELECT {COLUMNS} FROM event_consumers c"  # noqa: S608  # constant texts only
        " WHERE c.org_id = $1 AND c.name = $2",
        org_id,
        name,
    )
    return None if row is None else EventConsumer(*row)


async def forget_consumer(db: Connection, org_id: int, name: str) -> None:
    """Delete a reader, so that no events are kept for it."""
    await db.execute("DELETE FROM event_consumers WHERE org_id = $1 AND name = $2", org_id, name)


async def consumers(db: Connection, org_id: int | None) -> list[EventConsumer]:
    """Readers of one org, or all readers."""
    rows = await db.fetch(
        f"SELECT {COLUMNS} FROM event_consumers c"  # noqa: S608  # constant texts only
        " WHERE $1::bigint IS NULL OR c.org_id = $1 ORDER BY c.org_id, c.name",
        org_id,
    )
    return [EventConsumer(*row) for row in rows]


async def count_stuck(pool: Pool, *, older_us: int) -> int:
    """The number of readers without progress for some time, for which old events are kept."""
    async with session(pool) as db:
        count: int = await db.fetchval(
            "SELECT count(*) FROM event_consumers c"
            " WHERE c.moved_at < (SELECT ledger_now()) - $1 AND EXISTS (SELECT FROM outbox e"
            " WHERE e.event_id > c.position AND e.recorded_at < (SELECT ledger_now()) - $1"
            " AND (c.org_id = 0 OR e.org_id = c.org_id))",
            older_us,
        )
    return count


async def trim(pool: Pool, *, older_us: int, limit: int) -> int:
    """Delete old events that every reader has handled; how many.

    An event is kept for the readers of its org and of all orgs. Without readers, all are kept.
    """
    async with session(pool) as db:
        done: str = await db.execute(
            "DELETE FROM outbox o USING (SELECT e.org_id, e.event_id FROM outbox e, ("
            " SELECT min(position) AS position FROM event_consumers WHERE org_id = 0) AS all_orgs"
            " WHERE e.event_id <= coalesce(all_orgs.position, e.event_id)"
            " AND e.event_id <= (SELECT position FROM event_stream)"
            " AND e.recorded_at < (SELECT ledger_now()) - $1"
            " AND (all_orgs.position IS NOT NULL OR EXISTS (SELECT FROM event_consumers c"
            " WHERE c.org_id = e.org_id)) AND NOT EXISTS (SELECT FROM event_consumers c"
            " WHERE c.org_id = e.org_id AND c.position < e.event_id)"
            " ORDER BY e.event_id LIMIT $2"
            " ) AS old WHERE o.org_id = old.org_id AND o.event_id = old.event_id",
            older_us,
            limit,
        )
    return int(done.rpartition(" ")[2])
