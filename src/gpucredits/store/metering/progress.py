"""The progress in each partition of a topic, by this database.

Owns: the rows of bus_progress. Progress is saved in the transaction of the messages' effects. So a
message takes effect exactly once, whenever a consumer dies.
Must not: know what messages say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpucredits.store.database.connection import Connection


@dataclass(frozen=True, slots=True)
class Progress:
    """The last position of a partition that took effect, and the stream that it belongs to."""

    partition: int
    position: int
    stream: str
    moved_at: int


async def prepare(db: Connection, topic: str, partitions: int) -> None:
    """Make missing rows of partitions."""
    await db.execute(
        "INSERT INTO bus_progress (topic, partition, position, stream, moved_at)"
        " SELECT $1, p, 0, '', (SELECT ledger_now()) FROM generate_series(0, $2 - 1) AS p"
        " ON CONFLICT DO NOTHING",
        topic,
        partitions,
    )


async def lock_free(db: Connection, topic: str, partitions: int) -> list[Progress]:
    """Lock the partitions that no other server reads now, until the transaction ends."""
    rows = await db.fetch(
        "SELECT partition, position, stream, moved_at FROM bus_progress"
        " WHERE topic = $1 AND partition < $2 ORDER BY partition FOR UPDATE SKIP LOCKED",
        topic,
        partitions,
    )
    return [Progress(*row) for row in rows]


async def read(db: Connection, topic: str) -> list[Progress]:
    """The progress of each partition, whichever server reads it."""
    rows = await db.fetch(
        "SELECT partition, position, stream, moved_at FROM bus_progress WHERE topic = $1"
        " ORDER BY partition",
        topic,
    )
    return [Progress(*row) for row in rows]


async def save(
    db: Connection, topic: str, positions: Mapping[int, int], streams: Mapping[int, str]
) -> None:
    """Save progress, in the transaction of the messages' effects."""
    parts: Sequence[int] = sorted(positions)
    await db.execute(
        "UPDATE bus_progress b SET position = n.position, stream = n.stream,"
        " moved_at = (SELECT ledger_now())"
        " FROM unnest($2::int[], $3::bigint[], $4::text[]) AS n (partition, position, stream)"
        " WHERE b.topic = $1 AND b.partition = n.partition",
        topic,
        parts,
        [positions[part] for part in parts],
        [streams.get(part, "") for part in parts],
    )
