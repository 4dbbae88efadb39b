"""Events on the wire: CloudEvents 1.0 in JSON, with a position, and the readers of events."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.documented import NEXT_CURSOR, doc
from gpucredits.wire.scalars import InstantText

Position = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class EventAnswer(Struct, kw_only=True):
    """Something that happened: a CloudEvent, the same over HTTP and on the bus.

    Drop repeats by ``id``, or by a ``position`` that is not higher than the last of the same org.
    """

    specversion: Annotated[Literal["1.0"], doc("The version of CloudEvents.")] = "1.0"
    id: Annotated[str, doc("The id of the event; a repeated delivery has the same id.")]
    source: Annotated[str, doc("The org of the event, such as /gpucredits/acme.")]
    type: Annotated[str, doc("What happened, such as reservation.opened.")]
    time: Annotated[InstantText, doc("When it happened.")]
    subject: Annotated[str, doc("The id of the lease, grant or other thing that changed.")]
    position: Annotated[int, doc("The place in the order of delivery.")]
    datacontenttype: Annotated[Literal["application/json"], doc("The format of data.")] = (
        "application/json"
    )
    data: Annotated[dict[str, str | int], doc("Names and amounts.")]


class EventPage(Struct, kw_only=True):
    """Events in their order of delivery."""

    events: Annotated[list[EventAnswer], doc("The events, the oldest first.")]
    position: Annotated[int, doc("The position after these events: the cursor for later events.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class EventConsumerRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """How far a reader has come."""

    position: Annotated[
        Position, doc("The position of the last event that the reader has handled; 0 for none.")
    ]


class EventConsumerAnswer(Struct, kw_only=True):
    """A reader of events: events that it has not dealt with are kept for it."""

    consumer: Annotated[str, doc("The name of the reader.")]
    org: Annotated[str | None, doc("The org whose events it reads; null for all.")]
    position: Annotated[int, doc("The position of the last event that the reader has handled.")]
    behind: Annotated[
        int, doc("How far the reader is behind the newest event of its org, in positions.")
    ]
    moved_at: Annotated[InstantText, doc("When the reader last acknowledged events.")]


class EventConsumerPage(Struct, kw_only=True):
    """Readers of events."""

    consumers: Annotated[list[EventConsumerAnswer], doc("The readers.")]
