"""Limits on requests on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gpucredits.core.request_limit import BURST_MAX, PER_HOUR_MAX

Burst = Annotated[int, Meta(ge=1, le=BURST_MAX)]
PerSecond = Annotated[int, Meta(ge=1, le=BURST_MAX)]
PerHour = Annotated[int, Meta(ge=1, le=PER_HOUR_MAX)]


class RequestLimitRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """How many requests may be made: a speed, by the second or by the hour, and a burst.

    Without ``capacity``, four seconds of the speed may come at once.
    """

    refill_per_second: PerSecond | None = None
    refill_per_hour: PerHour | None = None
    capacity: Burst | None = None


class RequestLimitChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to change of the limit in force; what is left out stays as it is.

    With a null ``capacity``, four seconds of the speed may come at once.
    """

    refill_per_second: PerSecond | UnsetType = UNSET
    refill_per_hour: PerHour | UnsetType = UNSET
    capacity: Burst | UnsetType | None = UNSET


class RequestTerms(Struct, kw_only=True):
    """At most ``capacity`` requests at once, and so many an hour in the long run."""

    capacity: int
    refill_per_hour: int


class RequestLimitAnswer(Struct, kw_only=True):
    """The request limit in force, and where it comes from; no limit is null.

    Only keys of system scope set request limits, so none is ever lifted from below.
    """

    holder: Literal["key", "org"]
    key_id: str | None
    account: str | None
    limit: RequestTerms | None
    source: Literal["own", "default"]
    set_by_scope: Literal["system"] | None


class RequestLimitShown(Struct, kw_only=True):
    """The limit that turned a request away."""

    holder: Literal["key", "org"]
    name: str
    unit: Literal["requests"]
    capacity: int
    refill_per_hour: int
