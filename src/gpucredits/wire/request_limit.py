"""Limits on requests on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gpucredits.core.request_limit import BURST_MAX, PER_HOUR_MAX
from gpucredits.wire.documented import REQUEST_CAPACITY, REQUEST_REFILL, SET_BY_SCOPE, UNIT, doc

Burst = Annotated[int, Meta(ge=1, le=BURST_MAX)]
PerSecond = Annotated[int, Meta(ge=1, le=BURST_MAX)]
PerHour = Annotated[int, Meta(ge=1, le=PER_HOUR_MAX)]


class RequestLimitRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """How many requests may be made: a speed, by the second or by the hour, and a burst.

    Without ``capacity``, four seconds of the speed may come at once.
    """

    refill_per_second: Annotated[PerSecond | None, doc("Requests added each second.")] = None
    refill_per_hour: Annotated[PerHour | None, REQUEST_REFILL] = None
    capacity: Annotated[Burst | None, REQUEST_CAPACITY] = None


class RequestLimitChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of the limit in force to change; others stay as they are.

    With a null ``capacity``, four seconds of the speed may come at once.
    """

    refill_per_second: Annotated[PerSecond | UnsetType, doc("Requests added each second.")] = UNSET
    refill_per_hour: Annotated[PerHour | UnsetType, REQUEST_REFILL] = UNSET
    capacity: Annotated[Burst | UnsetType | None, REQUEST_CAPACITY] = UNSET


class RequestLimitTerms(Struct, kw_only=True):
    """At most ``capacity`` requests at once, and ``refill_per_hour`` more each hour."""

    capacity: Annotated[int, REQUEST_CAPACITY]
    refill_per_hour: Annotated[int, REQUEST_REFILL]


class RequestLimitAnswer(Struct, kw_only=True):
    """The request limit in force, and where it comes from; no limit is null.

    Only keys of system scope set request limits, so none is ever lifted from below.
    """

    holder: Annotated[
        Literal["key", "org"], doc("Whether the limit belongs to a key or to an org.")
    ]
    key_id: Annotated[str | None, doc("The id of the key; null if the limit belongs to an org.")]
    account: Annotated[str | None, doc("The org that has the limit; null if it belongs to a key.")]
    limit: Annotated[RequestLimitTerms | None, doc("The limit in force; null if there is none.")]
    source: Annotated[
        Literal["own", "default"], doc("Whether the limit is its own or the server's default.")
    ]
    set_by_scope: Annotated[Literal["system"] | None, SET_BY_SCOPE]


class RequestLimitShown(Struct, kw_only=True):
    """The limit that turned a request away."""

    holder: Annotated[
        Literal["key", "org"], doc("Whether the limit belongs to a key or to an org.")
    ]
    name: Annotated[str, doc("The key or the org that has the limit.")]
    unit: Annotated[Literal["requests"], UNIT]
    capacity: Annotated[int, REQUEST_CAPACITY]
    refill_per_hour: Annotated[int, REQUEST_REFILL]
