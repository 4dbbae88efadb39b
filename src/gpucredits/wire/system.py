"""The server about itself: health, its clock, and that of a test server."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.documented import doc
from gpucredits.wire.scalars import InstantText

ADVANCE_SECONDS_MAX = 10 * 366 * 24 * 3_600


class Alarm(Struct, kw_only=True):
    """Something that somebody should look at, although work is moving."""

    name: Annotated[str, doc("A stable word for programs, such as request_limits_suspended.")]
    detail: Annotated[str, doc("A sentence for people.")]
    count: Annotated[int, doc("How often the condition has occurred.")]


class RequestLimitsHealth(Struct, kw_only=True):
    """Where request buckets live, and whether this server counts alone because Redis is away.

    ``passed_alone`` requests passed by its own count instead of the shared one, and ``let_through``
    passed unlimited, since the start.
    """

    home: Annotated[Literal["process", "redis"], doc("Where request limits are counted.")]
    state: Annotated[
        Literal["held", "alone"], doc("Whether limits hold, or requests pass unlimited.")
    ]
    passed_alone: Annotated[
        int, doc("Requests counted by this server alone instead of the shared count.")
    ]
    let_through: Annotated[int, doc("Requests that passed unlimited since the server started.")]


class MeteringHealth(Struct, kw_only=True):
    """Whether the pipeline of measured use and events moves; numbers of all servers together."""

    bus: Annotated[Literal["postgres", "nats", "kafka"], doc("What carries the messages.")]
    state: Annotated[
        Literal["moving", "stalled", "away"],
        doc("moving; stalled, if there is work and nothing moves; away, if the bus is."),
    ]
    usage_behind: Annotated[int, doc("Messages of measured use that are not yet stored.")]
    events_behind: Annotated[int, doc("Events that are not yet on the bus.")]
    stalled_seconds: Annotated[int, doc("For how long there was work and nothing moved.")]
    dead_letters: Annotated[int, doc("Dead letters that wait for a decision.")]


class HealthAnswer(Struct, kw_only=True):
    """Whether work is moving."""

    status: Annotated[
        Literal["ok", "stalled", "unavailable", "clock_jumped"], doc("Whether work is moving.")
    ]
    version: Annotated[str, doc("The version of the server.")]
    detail: Annotated[str, doc("What is wrong, in words; empty if nothing is.")] = ""
    alarms: Annotated[
        list[Alarm], doc("Conditions that an operator should look at although work is moving.")
    ] = []
    request_limits: Annotated[
        RequestLimitsHealth | None, doc("Where request limits are counted, and whether they hold.")
    ] = None
    metering: Annotated[
        MeteringHealth | None, doc("How the metering pipeline stands; null without a bus.")
    ] = None


class TimeAnswer(Struct, kw_only=True):
    """The time by the clock that decides what has begun and what is over."""

    now: Annotated[InstantText, doc("The time on this server.")]


class ClockRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Move the clock of a test server forward."""

    advance_seconds: Annotated[
        int, Meta(ge=0, le=ADVANCE_SECONDS_MAX), doc("How far to move the clock forward.")
    ]


class ClockAnswer(Struct, kw_only=True):
    """The time it now is on this server."""

    now: Annotated[InstantText, doc("The time on this server.")]
    offset_seconds: Annotated[int, doc("How far the clock was moved in total.")]
