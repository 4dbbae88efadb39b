"""Draws and refunds of a token bucket as a naive caller makes them, on the product's arithmetic."""

from __future__ import annotations

from gpucredits.core.limits import TokenBucket, advance


def draw(bucket: TokenBucket, amount: int, now: int) -> bool:
    """Take tokens if there are enough; the bucket does not change otherwise."""
    advance(bucket, (), now)
    if bucket.level < amount:
        return False
    bucket.level -= amount
    return True


def refund(bucket: TokenBucket, amount: int) -> None:
    """Put unused tokens back; what does not fit is seen to spill at the next look."""
    bucket.level += amount
