"""Prices: micro-credits per GPU-hour for a type in a region, versioned by start.

Owns: which price applies to a request at an instant, and when the last one ended where none does.
Must not: compute charges (money does).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpucredits.core import bounds
from gpucredits.core.account import lineage


@dataclass(frozen=True, slots=True)
class Price:
    """A version of a price, in force on [effective_from, effective_to).

    An account path makes it a discount for that subtree. While a version with an end is in force it
    stands in front of earlier ones, which hold again after it. A version that ``is_end`` is none:
    from its start on there is no price until a later version starts.
    """

    price_id: int
    gpu_type: str
    region: str
    credits_per_gpu_hour: int
    effective_from: int
    account: str = ""
    effective_to: int = bounds.NEVER_US
    is_end: bool = False


def applicable_price(
    prices: Iterable[Price], *, account: str, gpu_type: str, region: str, now: int
) -> Price | None:
    """The version in force: the nearest ancestor's before the list price, the latest of each."""
    candidates = [
        price
        for price in prices
        if price.gpu_type == gpu_type
        and price.region == region
        and price.effective_from <= now < price.effective_to
    ]
    for owner in (*lineage(account), ""):
        versions = [price for price in candidates if price.account == owner]
        if versions:
            latest = max(versions, key=lambda price: (price.effective_from, price.price_id))
            if not latest.is_end:
                return latest
    return None


def last_end(
    prices: Iterable[Price], *, account: str, gpu_type: str, region: str, now: int
) -> int | None:
    """When the last price ended that an account had; None where none has."""
    owners = (*lineage(account), "")
    ends = (
        price.effective_from if price.is_end else price.effective_to
        for price in prices
        if price.gpu_type == gpu_type and price.region == region and price.account in owners
    )
    return max((end for end in ends if end <= now), default=None)
