"""Handlers of events: pages in the order of delivery, and named readers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.paging import PageQuery, number_cursor
from gpucredits.api.http.scope import AnyCall, act_of
from gpucredits.service.access.permissions import Permission
from gpucredits.service.metering.events import (
    CONSUMERS_MAX,
    ConsumersFull,
    ConsumerUnknown,
    EventConsumer,
    PositionAhead,
    acknowledge_events,
    event_to_wire,
    forget_consumer,
    list_consumers,
    list_events,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.metering.event import (
    EventConsumerAnswer,
    EventConsumerPage,
    EventConsumerRequest,
    EventPage,
)
from gpucredits.wire.scalars import Slug, format_instant, from_wire

route = Routes("metering")


class EventQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which events to list."""

    kind: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z_]+(\.[a-z_]+)?$", max_length=100)] | None,
        doc("Only events of this type, such as reservation.opened, or of this noun."),
    ] = None


@route("GET /v1/events", Permission.READ_EVENTS, client="event_page()")
async def get_events(call: ApiRequest[None, EventQuery]) -> EventPage:
    """List events in the order of delivery.

    Start without a cursor. At the end, use ``position`` as the cursor of a later call. A key of an
    org sees the events of its org.
    """
    query = call.query
    after = number_cursor(query, 0)
    rows = await call.services.run(
        list_events, org_id=own_org(call), after=after, limit=query.limit + 1, kind=query.kind
    )
    shown = rows[: query.limit]
    position = shown[-1].position if shown else after
    return EventPage(
        events=[event_to_wire(row) for row in shown],
        position=position,
        next_cursor=str(position) if len(rows) > query.limit else None,
    )


@route("GET /v1/event-consumers", Permission.READ_EVENTS, client="event_consumers()")
async def get_event_consumers(call: ApiRequest[None, NoQuery]) -> EventConsumerPage:
    """List the readers of events and how far behind each is."""
    found = await call.services.run(list_consumers, own_org(call))
    return EventConsumerPage(consumers=[consumer_to_wire(row) for row in found])


@route(
    "POST /v1/event-consumers/{consumer}:acknowledge",
    Permission.KEEP_EVENTS,
    reasons=("consumers_full",),
    client="acknowledge_events(consumer:consumer, position)",
)
async def post_event_acknowledge(
    call: ApiRequest[EventConsumerRequest, NoQuery],
) -> EventConsumerAnswer:
    """Record how far a reader has come; later events are kept for it.

    The first call makes the reader. A lower position than before is accepted.
    """
    name, position = consumer_param(call), call.body.position
    act = act_of(call, own_org(call) or 0)
    try:
        done = await call.services.run(acknowledge_events, act, name, position)
    except PositionAhead as error:
        raise invalid("position", f"must be at most {error.last}, the newest event's") from error
    except ConsumersFull as error:
        why = f"There are {CONSUMERS_MAX} readers of events, which is the most. Forget one first."
        raise ProblemError("consumers_full", why) from error
    call.replayed = done.is_replay
    return consumer_to_wire(done.consumer)


@route(
    "DELETE /v1/event-consumers/{consumer}",
    Permission.KEEP_EVENTS,
    reasons=("consumer_unknown",),
    client="forget_event_consumer(consumer:consumer)",
)
async def delete_event_consumer(call: ApiRequest[None, NoQuery]) -> EventConsumerAnswer:
    """Forget a reader, so that no events are kept for it."""
    name = consumer_param(call)
    act = act_of(call, own_org(call) or 0)
    try:
        done = await call.services.run(forget_consumer, act, name)
    except ConsumerUnknown as error:
        why = f"There is no reader of events {name}."
        raise ProblemError("consumer_unknown", why) from error
    call.replayed = done.is_replay
    return consumer_to_wire(done.consumer)


def own_org(call: AnyCall) -> int | None:
    """The org whose events the caller sees, None for all; a key below an org sees none."""
    principal = call.principal
    if not principal.is_whole_org:
        raise ProblemError(
            "forbidden", "Events are of a whole org: its staff reads them, with a key for the org."
        )
    return None if principal.is_system else principal.org_id


def consumer_param(call: AnyCall) -> str:
    """The name of the reader in the request's path."""
    try:
        return str(from_wire(Slug, call.params["consumer"]))
    except ValueError as error:
        raise invalid("consumer", str(error)) from error


def consumer_to_wire(row: EventConsumer) -> EventConsumerAnswer:
    """A reader as it is shown."""
    return EventConsumerAnswer(
        consumer=row.name,
        org=row.org or None,
        position=row.position,
        behind=max(row.newest - row.position, 0),
        moved_at=format_instant(row.moved_at),
    )
