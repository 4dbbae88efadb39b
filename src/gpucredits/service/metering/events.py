"""Events over HTTP, without a bus: pages in the order of delivery, and named readers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from gpucredits.metering.event_message import event_to_wire
from gpucredits.service.write.acts import Act, Done, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.metering import events
from gpucredits.store.metering.events import EventConsumer, StoredEvent

__all__ = [
    "CONSUMERS_MAX",
    "ConsumerChanged",
    "ConsumerUnknown",
    "ConsumersFull",
    "EventConsumer",
    "PositionAhead",
    "StoredEvent",
    "acknowledge_events",
    "event_to_wire",
    "forget_consumer",
    "list_consumers",
    "list_events",
]

CONSUMERS_MAX = 20  # of an org


class ConsumersFull(Exception):  # noqa: N818  # it states what happened
    """The org has as many readers as it may have."""


class ConsumerUnknown(Exception):  # noqa: N818  # it states what happened
    """There is no reader of that name."""


class PositionAhead(Exception):  # noqa: N818  # it states what happened
    """A reader claims a position beyond the last event."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the newest event has position {last}")
        self.last = last


async def list_events(
    pool: Pool, *, org_id: int | None, after: int, limit: int, kind: str | None
) -> list[StoredEvent]:
    """Events after a position: those of one org, or of all."""
    async with session(pool) as db:
        return await events.page(db, org_id=org_id, after=after, limit=limit, kind=kind)


async def list_consumers(pool: Pool, org_id: int | None) -> list[EventConsumer]:
    """Readers of an org, or all readers."""
    async with session(pool) as db:
        return await events.consumers(db, org_id)


@dataclass(frozen=True, slots=True)
class ConsumerChanged:
    """A reader, and whether an earlier call made the change."""

    consumer: EventConsumer
    is_replay: bool = False


async def acknowledge_events(pool: Pool, act: Act, name: str, position: int) -> ConsumerChanged:
    """Note a reader's position; a new reader is remembered and audited.

    Raises ConsumersFull or PositionAhead, and changes nothing then.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        newest = await events.last_position(db)
        if position > newest:
            raise PositionAhead(newest)
        known = await events.find_consumer(db, act.org_id, name)
        if known is None and len(await events.consumers(db, act.org_id)) >= CONSUMERS_MAX:
            raise ConsumersFull
        made = await events.set_consumer(db, act.org_id, name, position)
        note = None
        if known is None:
            note = act.note("event_consumer.create", name, new={"position": position})
        return msgspec.json.encode(ConsumerChanged(made)), note

    return _changed(await perform(pool, act, work))


async def forget_consumer(pool: Pool, act: Act, name: str) -> ConsumerChanged:
    """Forget a reader, so that no events are kept for it; ConsumerUnknown if there is none."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        known = await events.find_consumer(db, act.org_id, name)
        if known is None:
            raise ConsumerUnknown
        await events.forget_consumer(db, act.org_id, name)
        note = act.note("event_consumer.forget", name, old={"position": known.position})
        return msgspec.json.encode(ConsumerChanged(known)), note

    return _changed(await perform(pool, act, work))


def _changed(done: Done) -> ConsumerChanged:
    answer = msgspec.json.decode(done.answer, type=ConsumerChanged)
    return replace(answer, is_replay=done.is_replay)
