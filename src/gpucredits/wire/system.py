"""The server about itself: health, its clock, and that of a test server."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.scalars import InstantText

ADVANCE_SECONDS_MAX = 10 * 366 * 24 * 3_600


class Alarm(Struct, kw_only=True):
    """Something that somebody should look at, although work is moving."""

    name: str
    detail: str
    count: int


class RequestLimitsHealth(Struct, kw_only=True):
    """Where request buckets live, and whether this server counts alone since Redis is away.

    ``passed_alone`` requests passed by its own count instead of the shared one, and ``let_through``
    by none, since the start.
    """

    home: Literal["process", "redis"]
    state: Literal["held", "alone"]
    passed_alone: int
    let_through: int


class HealthAnswer(Struct, kw_only=True):
    """Whether work is moving."""

    status: Literal["ok", "stalled", "unavailable", "clock_jumped"]
    version: str
    detail: str = ""
    alarms: list[Alarm] = []
    request_limits: RequestLimitsHealth | None = None


class TimeAnswer(Struct, kw_only=True):
    """What time it is by the clock that decides what has begun and what is over."""

    now: InstantText


class ClockRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Move the clock of a test server forward."""

    advance_seconds: Annotated[int, Meta(ge=0, le=ADVANCE_SECONDS_MAX)]


class ClockAnswer(Struct, kw_only=True):
    """The time it now is on this server."""

    now: InstantText
    offset_seconds: int
