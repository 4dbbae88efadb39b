"""Prices: micro-credits per GPU-hour for a type in a region, versioned by start.

Owns: which price applies to a request at an instant.
Must not: compute charges (money does).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpucredits.core.account import lineage


@dataclass(frozen=True, slots=True)
class Price:
    """A version of a price; an account path makes it a discount for that subtree."""

    price_id: int
    gpu_type: str
    region: str
    credits_per_gpu_hour: int
    effective_from: int
    account: str = ""


def applicable_price(
    prices: Iterable[Price], *, account: str, gpu_type: str, region: str, now: int
) -> Price | None:
    """The version in force: the nearest ancestor's before the list price, the latest of each."""
    candidates = [
        price
        for price in prices
        if price.gpu_type == gpu_type and price.region == region and price.effective_from <= now
    ]
    for owner in (*lineage(account), ""):
        versions = [price for price in candidates if price.account == owner]
        if versions:
            return max(versions, key=lambda price: (price.effective_from, price.price_id))
    return None
