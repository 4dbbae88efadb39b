"""The overview of an account's limits on the wire: cap, used, left, resets at."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpucredits.wire.gate import QuantityText, UnitName
from gpucredits.wire.scalars import InstantText

LimitKind = Literal["quota", "rate_limit", "budget", "credit_limit", "request_limit"]


class LimitAnswer(Struct, kw_only=True):
    """One limit of one account on the way from the org down.

    ``used`` counts what live leases hold. For a rate limit ``left`` is what could be authorised
    now, and ``resets_at`` when it would be full. What nothing is known of is null.
    """

    kind: LimitKind
    limit_id: str | None
    scope: str
    account: str
    name: str
    unit: UnitName
    cap: QuantityText
    used: QuantityText | None
    left: QuantityText | None
    resets_at: InstantText | None


class LimitsAnswer(Struct, kw_only=True):
    """Every limit that a job of an account meets, the org's first."""

    account: str
    limits: list[LimitAnswer]
    as_of: InstantText
