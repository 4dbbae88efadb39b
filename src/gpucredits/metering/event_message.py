"""An event of the outbox in the form of its delivery: a CloudEvent, on the bus and over HTTP."""

from __future__ import annotations

from typing import Final

import msgspec

from gpucredits.core import ids
from gpucredits.metering.bus import Message
from gpucredits.store.metering.events import StoredEvent
from gpucredits.wire.metering.event import EventAnswer
from gpucredits.wire.scalars import format_instant

# The kind of id that names the subject of an event, by the first word of the event's type.
SUBJECTS: Final = {
    "account": ids.ACCOUNT,
    "budget": ids.BUDGET,
    "grant": ids.GRANT,
    "request": ids.REQUEST,
    "reservation": ids.RESERVATION,
    "spend": ids.ANOMALY,
    "statement": ids.STATEMENT,
    "topup": ids.TOPUP,
}
_ENCODER = msgspec.json.Encoder()


def event_to_wire(event: StoredEvent) -> EventAnswer:
    """The envelope of an event."""
    noun = event.type.partition(".")[0]
    prefix = SUBJECTS.get(noun, ids.EVENT)
    return EventAnswer(
        id=id_of(event),
        source=f"/gpucredits/{event.org}",
        type=event.type,
        time=format_instant(event.recorded_at),
        subject=ids.format_id(prefix, event.org_id, event.subject_id),
        position=event.position,
        data=msgspec.json.decode(event.payload, type=dict[str, str | int]),
    )


def id_of(event: StoredEvent) -> str:
    """The id by which a reader drops repeats: its number and its time.

    A database that was restored, or a standby that had not all writes, gives numbers out again.
    """
    number = ids.format_id(ids.EVENT, event.org_id, event.event_id)
    return f"{number}_{ids.base36(event.recorded_at)}"


def message_of(event: StoredEvent) -> Message:
    """An event as a message of its org."""
    shown = event_to_wire(event)
    return Message(event.org_id, shown.id, _ENCODER.encode(shown))
