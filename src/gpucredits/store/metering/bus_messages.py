"""The messages of the bus in PostgreSQL, in order within each partition.

Owns: the rows of bus_ends and bus_messages.
Must not: know what messages say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session

Stored = tuple[int, int, bytes]  # partition, position, body


async def append(pool: Pool, topic: str, bodies: Mapping[int, Sequence[bytes]]) -> None:
    """Store messages of some partitions, each in its order, in one transaction."""
    async with session(pool) as db, db.transaction():
        for partition in sorted(bodies):
            last = await db.fetchval(
                "INSERT INTO bus_ends AS b (topic, partition, position) VALUES ($1, $2, $3)"
                " ON CONFLICT (topic, partition) DO UPDATE"
                " SET position = b.position + excluded.position RETURNING position",
                topic,
                partition,
                len(bodies[partition]),
            )
            await db.execute(
                "INSERT INTO bus_messages (topic, partition, position, body)"
                " SELECT $1, $2, $3 + place, body"
                " FROM unnest($4::bytea[]) WITH ORDINALITY AS m (body, place)",
                topic,
                partition,
                last - len(bodies[partition]),
                list(bodies[partition]),
            )


async def read(pool: Pool, topic: str, after: Mapping[int, int], *, limit: int) -> list[Stored]:
    """The messages after a position in each partition, in order within a partition."""
    async with session(pool) as db:
        rows = await db.fetch(
            "SELECT m.partition, m.position, m.body"
            " FROM unnest($2::int[], $3::bigint[]) AS a (partition, position)"
            " CROSS JOIN LATERAL (SELECT * FROM bus_messages b WHERE b.topic = $1"
            " AND b.partition = a.partition AND b.position > a.position"
            " ORDER BY b.position LIMIT $4) AS m",
            topic,
            list(after),
            list(after.values()),
            limit,
        )
    return [(row["partition"], row["position"], row["body"]) for row in rows]


async def extents(pool: Pool, topic: str) -> dict[int, tuple[int, int]]:
    """(first, last) position of each partition; if it is empty, first is last + 1."""
    async with session(pool) as db:
        rows = await db.fetch(
            "SELECT e.partition, e.position AS last, coalesce((SELECT min(m.position)"
            " FROM bus_messages m WHERE m.topic = e.topic AND m.partition = e.partition),"
            " e.position + 1) AS first FROM bus_ends e WHERE e.topic = $1",
            topic,
        )
    return {row["partition"]: (row["first"], row["last"]) for row in rows}


async def forget(pool: Pool, topic: str, through: Mapping[int, int]) -> None:
    """Delete messages that have taken effect."""
    async with session(pool) as db:
        await db.execute(
            "DELETE FROM bus_messages m"
            " USING unnest($2::int[], $3::bigint[]) AS t (partition, position)"
            " WHERE m.topic = $1 AND m.partition = t.partition AND m.position <= t.position",
            topic,
            list(through),
            list(through.values()),
        )
