"""Token buckets: how fast credits may be authorised, or requests be made.

A bucket holds at most ``capacity`` tokens and gains ``refill_per_hour`` of them each hour, evenly.
Owns: the exact arithmetic. ``level`` and ``fraction`` are what it held at ``level_at``; drawing
tokens changes ``level`` alone, so a draw or a refund never moves time and never loses or mints a
fraction of a token. A bucket damps bursts; it is never an allowance.
Must not: know accounts or leases.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gpucredits.core import bounds
from gpucredits.core.authority import Authority
from gpucredits.core.bounds import HOUR_US


class Tokens(IntEnum):
    """What a bucket's tokens stand for."""

    CREDITS = 0  # micro-credits that may be authorised, for each account
    REQUESTS = 1  # requests that may be made, for each access key


@dataclass(slots=True)
class TokenBucket:
    """One bucket; ``fraction`` is in 3,600,000,000ths of a token.

    ``level`` may be below zero where charges had to be taken that no token stood for, and drifts
    down between fillings while ``level_at`` stands still: only ``tokens`` says what is there.
    ``set_by`` is the scope of the key that set it.
    """

    bucket_id: int
    account_id: int
    capacity: int
    refill_per_hour: int
    level: int
    level_at: int
    fraction: int = 0
    kind: Tokens = Tokens.CREDITS
    ended_at: int = 0
    set_by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True)
class BucketTerms:
    """A capacity and a refill that hold from an instant on: a bucket's own, or boosted."""

    since: int
    capacity: int
    refill_per_hour: int


def tokens(bucket: TokenBucket, now: int) -> int:
    """Whole tokens there are now, by the bucket's own terms."""
    gained = bucket.fraction + bucket.refill_per_hour * (now - bucket.level_at)
    return min(bucket.capacity, bucket.level + gained // HOUR_US)


def clears_at(bucket: TokenBucket, amount: int, now: int) -> int | None:
    """The first instant at which ``amount`` could be drawn; None when it never could.

    What would take longer than instants can be written is never.
    """
    if amount > bucket.capacity:
        return None
    missing = (amount - bucket.level) * HOUR_US - bucket.fraction
    if missing <= 0:
        return now
    if not bucket.refill_per_hour:
        return None if tokens(bucket, now) < amount else now
    at = max(now, bucket.level_at - (-missing // bucket.refill_per_hour))
    return at if at <= bounds.INSTANT_US_MAX else None


def resize(bucket: TokenBucket, *, capacity: int, refill_per_hour: int, now: int) -> None:
    """Change the terms; tokens already there stay, as far as they fit."""
    advance(bucket, (), now)
    bucket.capacity = capacity
    bucket.refill_per_hour = refill_per_hour
    _spill(bucket, capacity)


def advance(bucket: TokenBucket, changes: tuple[BucketTerms, ...], now: int) -> BucketTerms:
    """Bring ``level`` to ``now`` through every change of terms on the way; the terms in force.

    ``changes`` are in order of time; before the first one the bucket's own terms hold.
    """
    terms = BucketTerms(0, bucket.capacity, bucket.refill_per_hour)
    for change in changes:
        if change.since > now:
            break
        if change.since > bucket.level_at:
            _refill(bucket, terms, change.since)
        terms = change
        if change.since >= bucket.level_at:
            _spill(bucket, change.capacity)
    if now > bucket.level_at:
        _refill(bucket, terms, now)
    _spill(bucket, terms.capacity)
    return terms


def _refill(bucket: TokenBucket, terms: BucketTerms, until: int) -> None:
    gained = bucket.fraction + terms.refill_per_hour * (until - bucket.level_at)
    whole, bucket.fraction = divmod(gained, HOUR_US)
    bucket.level += whole
    bucket.level_at = until
    _spill(bucket, terms.capacity)


def _spill(bucket: TokenBucket, capacity: int) -> None:
    if bucket.level >= capacity:
        bucket.level = capacity
        bucket.fraction = 0
