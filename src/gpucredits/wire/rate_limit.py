"""Credit rate limits on the wire: a bucket of credits that may be authorised at once."""

from __future__ import annotations

from msgspec import Struct, structs

from gpucredits.core import ids
from gpucredits.core.command import SetRateLimit
from gpucredits.core.gate import Unit
from gpucredits.core.limit_standing import RateLimitStanding
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import RateLimitSaved
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.wire.boost import BoostAnswer, boost_to_wire
from gpucredits.wire.scalars import Amount, Credits, CreditsText, InstantText, format_instant


class RateLimitRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """At most ``capacity`` credits authorised at once, and ``refill_per_hour`` more each hour."""

    capacity: Amount
    refill_per_hour: Credits


class RateLimitTerms(Struct, kw_only=True):
    """A rate limit as it was set."""

    limit_id: str
    account: str
    capacity: CreditsText
    refill_per_hour: CreditsText
    ended_at: InstantText | None = None


class RateLimitAnswer(RateLimitTerms, kw_only=True):
    """A rate limit and how it stands: ``level`` credits could be authorised now.

    ``cap`` and ``refill`` are its terms with the boosts that are in force. ``full_at`` is when it
    would be full if nothing more were drawn, null where that is now or never.
    """

    cap: CreditsText
    refill: CreditsText
    level: CreditsText
    full_at: InstantText | None
    boosts: list[BoostAnswer]
    as_of: InstantText


def rate_limit_from_wire(account: str, request: RateLimitRequest) -> SetRateLimit:
    """The core's command."""
    return SetRateLimit(
        account=account,
        capacity=int(request.capacity),
        refill_per_hour=int(request.refill_per_hour),
    )


def rate_limit_saved_to_wire(org_id: int, outcome: RateLimitSaved) -> RateLimitTerms:
    """The answer to setting or ending a rate limit."""
    return rate_limit_to_wire(org_id, outcome.path, outcome.bucket)


def rate_limit_to_wire(org_id: int, path: str, bucket: TokenBucket) -> RateLimitTerms:
    """A rate limit as it was set."""
    return RateLimitTerms(
        limit_id=ids.format_id(ids.RATE_LIMIT, org_id, bucket.bucket_id),
        account=path,
        capacity=format_credits(bucket.capacity),
        refill_per_hour=format_credits(bucket.refill_per_hour),
        ended_at=format_instant(bucket.ended_at) if bucket.ended_at else None,
    )


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
            boost_to_wire(org_id, path, boost, unit=Unit.CREDITS, is_rate_limit=True)
            for boost in standing.boosts
        ],
        as_of=format_instant(now),
    )
