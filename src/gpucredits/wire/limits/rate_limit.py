"""Credit rate limits on the wire: a bucket of credits that may be authorised at once."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType, structs

from gpucredits.core.authority import Authority
from gpucredits.core.command import SetRateLimit
from gpucredits.core.gate import GateUnit
from gpucredits.core.limit_standing import RateLimitStanding
from gpucredits.core.limit_states import rate_limit_state
from gpucredits.core.limits import TokenBucket
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import RateLimitSaved
from gpucredits.wire.change import given, named_in
from gpucredits.wire.documented import (
    ACCOUNT,
    AS_OF,
    BOOSTS,
    CREDIT_CAPACITY,
    CREDIT_REFILL,
    ENDED_AT,
    SET_BY_SCOPE,
    doc,
)
from gpucredits.wire.limits.boost import BoostAnswer, boost_to_wire
from gpucredits.wire.scalars import Amount, Credits, CreditsText, InstantText, format_instant
from gpucredits.wire.words import AuthorityName


class RateLimitRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most ``capacity`` credits authorised at once, and ``refill_per_hour`` more each hour."""

    capacity: Annotated[Amount, CREDIT_CAPACITY]
    refill_per_hour: Annotated[Credits, CREDIT_REFILL]


class RateLimitChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of a rate limit to change; others stay as they are."""

    capacity: Annotated[Amount | UnsetType, CREDIT_CAPACITY] = UNSET
    refill_per_hour: Annotated[Credits | UnsetType, CREDIT_REFILL] = UNSET


class RateLimitTerms(Struct, kw_only=True):
    """A rate limit as it was set."""

    limit_id: Annotated[str, doc("The id of the limit.")]
    account: Annotated[str, ACCOUNT]
    capacity: Annotated[CreditsText, CREDIT_CAPACITY]
    refill_per_hour: Annotated[CreditsText, CREDIT_REFILL]
    set_by_scope: Annotated[AuthorityName, SET_BY_SCOPE]
    ended_at: Annotated[InstantText | None, ENDED_AT] = None


class RateLimitAnswer(RateLimitTerms, kw_only=True):
    """A rate limit and how it stands: ``level`` credits could be authorised now.

    ``cap`` and ``refill`` are its terms with the boosts that are in force. ``full_at`` is when it
    would be full if nothing more were drawn, null where that is now or never.
    """

    cap: Annotated[CreditsText, doc("The capacity including boosts in force.")]
    refill: Annotated[CreditsText, doc("Credits added each hour, including boosts in force.")]
    level: Annotated[CreditsText, doc("Credits that can be authorised now.")]
    full_at: Annotated[
        InstantText | None,
        doc("When the bucket would be full if nothing more were drawn; null if now or never."),
    ]
    boosts: Annotated[list[BoostAnswer], BOOSTS]
    as_of: Annotated[InstantText, AS_OF]


def rate_limit_from_wire(account: str, request: RateLimitRequest, by: Authority) -> SetRateLimit:
    """The core's command."""
    return SetRateLimit(
        account=account,
        capacity=int(request.capacity),
        refill_per_hour=int(request.refill_per_hour),
        by=by,
    )


def rate_limit_change_from_wire(
    account: str, change: RateLimitChange, by: Authority
) -> SetRateLimit:
    """The core's command, which changes what is named."""
    return SetRateLimit(
        account=account,
        capacity=int(given(change.capacity, Amount(0))),
        refill_per_hour=int(given(change.refill_per_hour, Credits(0))),
        named=named_in(change),
        by=by,
    )


def rate_limit_saved_to_wire(org_id: int, outcome: RateLimitSaved) -> RateLimitTerms:
    """The answer to setting or ending a rate limit."""
    return rate_limit_to_wire(org_id, outcome.path, outcome.bucket)


def rate_limit_to_wire(org_id: int, path: str, bucket: TokenBucket) -> RateLimitTerms:
    """A rate limit as it was set."""
    return RateLimitTerms(**rate_limit_state(org_id, path, bucket))


def rate_limit_standing_to_wire(
    org_id: int, path: str, standing: RateLimitStanding, now: int
) -> RateLimitAnswer:
    """A rate limit and how it stands."""
    return RateLimitAnswer(
        **structs.asdict(rate_limit_to_wire(org_id, path, standing.bucket)),
        cap=format_credits(standing.cap),
        refill=format_credits(standing.refill),
        level=format_credits(standing.level),
        full_at=None if standing.full_at is None else format_instant(standing.full_at),
        boosts=[
            boost_to_wire(org_id, path, boost, unit=GateUnit.CREDITS, is_rate_limit=True)
            for boost in standing.boosts
        ],
        as_of=format_instant(now),
    )
