"""Limits on requests: whose bucket a request draws from, and on which terms.

Owns: the bounds of such a limit, the names of the buckets, and how a speed becomes whole tokens
per hour. The arithmetic is token_bucket's; within these bounds every product of it is below 2**53,
so that a shared store which counts in doubles counts exactly.
Must not: know credits, HTTP or where buckets live.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Final, NamedTuple

from gpucredits.core.change import Named, merged
from gpucredits.core.limits import TokenBucket, Tokens, clears_at

HOUR_S: Final = 3_600
BURST_MAX: Final = 1_000_000
PER_HOUR_MAX: Final = BURST_MAX * HOUR_S
BURST_SECONDS_DEFAULT: Final = 4


class Holder(IntEnum):
    """Whose requests a bucket counts."""

    KEY = 1
    ORG = 2  # all keys of an org together


class BucketName(NamedTuple):
    """Which bucket: of a key by its number, or of an org, whose number is 0.

    ``org`` is the org's path, empty for keys of the whole system.
    """

    org_id: int
    holder: Holder
    number: int
    org: str


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """At most ``capacity`` requests at once, and ``refill_per_hour`` in the long run."""

    capacity: int
    refill_per_hour: int


@dataclass(frozen=True, slots=True)
class BucketDraw:
    """One bucket that a request draws a token from, by the terms in force."""

    name: BucketName
    limit: RequestLimit


@dataclass(frozen=True, slots=True)
class RequestStanding:
    """How a bucket stands: its whole tokens, and in how long it is full; None where unknown."""

    ask: BucketDraw
    left: int | None = None
    full_in_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What holds for keys and orgs that have no limit of their own; None: no limit."""

    key: RequestLimit | None = None
    org: RequestLimit | None = None


def limit_of(per_second: Fraction, burst: int | None) -> RequestLimit:
    """The limit that a speed and a burst describe; ValueError says what is wrong with them."""
    per_hour = per_second * HOUR_S
    if per_hour.denominator != 1 or not 1 <= per_hour <= PER_HOUR_MAX:
        raise ValueError(
            f"must be from 1 request an hour to {BURST_MAX} a second, in whole requests an hour"
        )
    if burst is None:
        burst = usual_burst(per_hour.numerator)
    if not 1 <= burst <= BURST_MAX:
        raise ValueError(f"must allow bursts of 1 to {BURST_MAX} requests")
    return RequestLimit(burst, per_hour.numerator)


def usual_burst(per_hour: int) -> int:
    """How many requests may come at once where nothing else is said: a few seconds of the speed."""
    return min(BURST_MAX, max(1, -(-per_hour * BURST_SECONDS_DEFAULT // HOUR_S)))


def changed_limit(wanted: RequestLimit, before: RequestLimit | None, named: Named) -> RequestLimit:
    """The limit that was in force with what is named changed; a capacity of 0 is the usual one.

    ValueError where neither says how fast requests may come.
    """
    limit = merged(wanted, before, named)
    if not limit.refill_per_hour:
        raise ValueError("must be given, since no limit is in force")
    return RequestLimit(limit.capacity or usual_burst(limit.refill_per_hour), limit.refill_per_hour)


def asks_of(
    *,
    key: tuple[int, int],
    org: str,
    own: RequestLimit | None,
    of_org: RequestLimit | None,
    defaults: Defaults,
) -> tuple[BucketDraw, ...]:
    """The buckets that a key's requests draw from; ``key`` is its org's number and its own.

    Keys for the whole system draw from no org's bucket.
    """
    org_id, number = key
    asks = []
    if limit := own or defaults.key:
        asks.append(BucketDraw(BucketName(org_id, Holder.KEY, number, org), limit))
    if org and (limit := of_org or defaults.org):
        asks.append(BucketDraw(BucketName(org_id, Holder.ORG, 0, org), limit))
    return tuple(asks)


def standing_of(ask: BucketDraw, bucket: TokenBucket | None) -> RequestStanding:
    """The standing of a bucket that was brought to now; None means an unknown bucket."""
    if bucket is None:
        return RequestStanding(ask)
    full_at = clears_at(bucket, bucket.capacity, bucket.level_at)
    return RequestStanding(
        ask, bucket.level, None if full_at is None else full_at - bucket.level_at
    )


def bucket_of(ask: BucketDraw, *, level: int, fraction: int, level_at: int) -> TokenBucket:
    """A bucket of requests that held so much at an instant."""
    limit = ask.limit
    return TokenBucket(
        bucket_id=ask.name.number,
        account_id=0,
        capacity=limit.capacity,
        refill_per_hour=limit.refill_per_hour,
        level=min(level, limit.capacity),
        level_at=level_at,
        fraction=fraction if level < limit.capacity else 0,
        kind=Tokens.REQUESTS,
    )
