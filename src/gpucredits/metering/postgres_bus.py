"""A bus that is the server's own PostgreSQL: no broker, the same promises.

It keeps bursts away from the tables of measured use, and runs the pipeline without a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpucredits.metering.bus import (
    PARTITIONS,
    BusUnavailable,
    Extent,
    Message,
    Received,
    Topic,
    by_partition,
)
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.errors import Conflict, Unavailable
from gpucredits.store.metering import bus_messages


class PostgresBus:
    """Messages in a table, deleted once they have taken effect."""

    name = "postgres"

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def partitions(self, topic: Topic) -> int:
        """The number of partitions, which is fixed."""
        del topic
        return PARTITIONS

    async def publish(self, topic: Topic, messages: Sequence[Message]) -> None:
        """Store messages in one transaction."""
        parts = by_partition(messages, PARTITIONS)
        bodies = {part: [each.body for each in found] for part, found in parts.items()}
        try:
            await bus_messages.append(self._pool, topic, bodies)
        except (Unavailable, Conflict) as error:
            raise BusUnavailable(str(error)) from error

    async def read(
        self, topic: Topic, after: Mapping[int, int], *, limit: int
    ) -> Sequence[Received]:
        """The messages after a position in each partition."""
        found = await bus_messages.read(self._pool, topic, after, limit=limit)
        return [Received(*each) for each in found]

    async def extents(self, topic: Topic) -> Mapping[int, Extent]:
        """The first and last position of each partition."""
        found = await bus_messages.extents(self._pool, topic)
        return {part: Extent(*found.get(part, (1, 0)), self.name) for part in range(PARTITIONS)}

    async def forget(self, topic: Topic, through: Mapping[int, int]) -> None:
        """Delete messages; a backup of the database has its own copies."""
        await bus_messages.forget(self._pool, topic, through)

    async def close(self) -> None:
        """Do nothing: the pool belongs to the server."""
