"""Publishes the events of the outbox on the bus: in order per org, at least once.

Owns: the progress of the reader ``bus``, which is locked during publishing. So one server publishes
at a time. If it dies before it saves its progress, the events are published again.
Must not: decide what is news; the outbox has it.
"""

from __future__ import annotations

import time
from typing import Final

from gpucredits.metering.bus import Bus, BusUnavailable, Message, Topic
from gpucredits.metering.event_message import message_of
from gpucredits.metering.standing import PipelineStanding
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.metering import events

EVENTS_MAX: Final = 200  # in one transaction
LOOK_EVERY_S: Final = 5.0


class EventOutlet:
    """Publishes the events that the bus does not have yet."""

    def __init__(self, pool: Pool, bus: Bus, standing: PipelineStanding) -> None:
        self._pool = pool
        self._bus = bus
        self._standing = standing
        self._looked_s = 0.0
        self._is_prepared = False

    async def step(self) -> bool:
        """Publish the next events; whether there may be more."""
        try:
            await self._look()
            return await self._publish()
        except BusUnavailable as error:
            self._standing.trouble = str(error)
            raise

    async def _publish(self) -> bool:
        async with session(self._pool) as db:
            if not self._is_prepared:
                await events.prepare_consumer(db, events.BUS)
                self._is_prepared = True
            return await self._publish_with(db)

    async def _publish_with(self, db: Connection) -> bool:
        async with db.transaction():
            position = await events.lock_consumer(db, events.BUS)
            if position is None:
                return False
            found = await events.page(db, org_id=None, after=position, limit=EVENTS_MAX)
            if not found:
                return False
            messages: list[Message] = [message_of(each) for each in found]
            await self._bus.publish(Topic.EVENTS, messages)
            await events.set_consumer(db, 0, events.BUS, found[-1].position)
        return len(found) == EVENTS_MAX

    async def _look(self) -> None:
        """Measure now and then how many events the bus lacks."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return
        async with session(self._pool) as db:
            last = await events.last_position(db)
            reader = await events.find_consumer(db, 0, events.BUS)
        place = 0 if reader is None else reader.position
        self._standing.events.saw(max(last - place, 0), place)
        self._looked_s = now_s
