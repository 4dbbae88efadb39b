"""Boosts: limits raised for a while, which lapse by themselves.

Owns: what a limit is at an instant. A boost is compared with the time in the rule that asks, so
nobody has to take it back.
Must not: change the limit it raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpucredits.core import bounds
from gpucredits.core.authority import Authority
from gpucredits.core.token_bucket import BucketTerms, TokenBucket


@dataclass(slots=True)
class Boost:
    """``amount`` more on a quota's limit or a bucket's capacity on [starts_at, ends_at).

    ``target_id`` is the quota's or the bucket's id; ``refill_per_hour`` is for buckets only.
    """

    boost_id: int
    account_id: int
    target_id: int
    amount: int
    starts_at: int
    ends_at: int
    refill_per_hour: int = 0
    note: str = ""
    created_at: int = 0
    set_by: Authority = Authority.SYSTEM


def boosted(limit: int, boosts: Iterable[Boost], at: int) -> int:
    """The limit with every boost that is in force at an instant."""
    return limit + sum(boost.amount for boost in boosts if boost.starts_at <= at < boost.ends_at)


def next_change(boosts: Iterable[Boost], now: int) -> int:
    """The next instant at which a boost begins or ends."""
    edges = (edge for boost in boosts for edge in (boost.starts_at, boost.ends_at) if edge > now)
    return min(edges, default=bounds.NEVER_US)


def bucket_terms(bucket: TokenBucket, boosts: Iterable[Boost]) -> tuple[BucketTerms, ...]:
    """A bucket's terms from each instant at which one of its boosts begins or ends."""
    known = tuple(boosts)
    edges = sorted({edge for boost in known for edge in (boost.starts_at, boost.ends_at)})
    return tuple(
        BucketTerms(
            edge,
            boosted(bucket.capacity, known, edge),
            bucket.refill_per_hour
            + sum(b.refill_per_hour for b in known if b.starts_at <= edge < b.ends_at),
        )
        for edge in edges
    )
