"""Dividing a budget among siblings: weighted max-min on one resource, dominant shares on several.

Owns: the arithmetic of progressive filling at one level of the tree.
Must not: know tenants, jobs or trees.

One resource is filled exactly, in integer fractions. Several are filled in fixed point with
``POINT`` fractional bits, far finer than the unit they are later compared in.
"""

from __future__ import annotations

from math import gcd
from typing import Final, NamedTuple

Vector = tuple[int, ...]
Fraction = tuple[int, int]
"""Numerator and denominator, both integers, the second above zero."""

POINT: Final = 128
_SLACK: Final = 1 << 64  # what rounding may have taken from a fixed-point number, generously


class Claim(NamedTuple):
    """What one sibling could use, and the most of its dominant resource that it may get."""

    weight: int
    demand: Vector
    limit: int


def ratio_scale(weights: list[int]) -> int:
    """A power of two so large that ``value * scale // weight`` orders exactly as the fractions.

    Two different fractions a/v and b/w differ by at least 1/(v*w). Scaled by at least v*w they
    differ by at least one, so that rounding down keeps their order; equal ones stay equal. This
    is cross-multiplication, done once per value instead of once per comparison.
    """
    largest = max(weights, default=1)
    return 1 << (2 * largest.bit_length())


def floor_of(share: Fraction) -> int:
    """The largest whole number that is not above the share."""
    numerator, denominator = share
    if denominator == 1 << POINT:
        numerator += _SLACK
    return numerator // denominator


def ceiling_of(share: Fraction) -> int:
    """The smallest whole number that is not below the share."""
    numerator, denominator = share
    if denominator == 1 << POINT:
        numerator -= _SLACK
    return -(-numerator // denominator)


def fill_exactly(claims: list[Claim], budget: Fraction) -> list[Fraction]:
    """Weighted max-min of one resource; weight 0 shares equally what the others leave."""
    shares: list[Fraction] = [(0, 1)] * len(claims)
    weighted = [index for index, claim in enumerate(claims) if claim.weight]
    rest = [index for index, claim in enumerate(claims) if not claim.weight]
    for group in (weighted, rest):
        weights = {index: claims[index].weight or 1 for index in group}
        scale = ratio_scale(list(weights.values()))
        group.sort(key=lambda index: claims[index].limit * scale // (claims[index].weight or 1))
        left, denominator = budget
        active = sum(weights.values())
        for position, index in enumerate(group):
            limit = claims[index].limit
            if limit * active * denominator > left * weights[index]:
                for behind in group[position:]:
                    shares[behind] = reduced(left * weights[behind], denominator * active)
                left = 0
                break
            shares[index] = (limit, 1)
            left -= limit * denominator
            active -= weights[index]
        budget = (left, denominator)
    return shares


def fill_dominantly(claims: list[Claim], budget: Vector) -> list[int]:
    """Dominant shares in fixed point: all grow together, in proportion to their weights.

    A sibling stops growing when it has its limit, or when a resource that it needs runs out.
    ``budget`` is in fixed point too, and so is the answer.
    """
    shares = [0] * len(claims)
    left = list(budget)
    weighted = [index for index, claim in enumerate(claims) if claim.weight]
    rest = [index for index, claim in enumerate(claims) if not claim.weight]
    for group in (weighted, rest):
        _fill_group(claims, group, left, shares)
    return shares


def _fill_group(claims: list[Claim], group: list[int], left: list[int], shares: list[int]) -> None:
    weights = {index: claims[index].weight or 1 for index in group}
    full_at = {index: (claims[index].limit << POINT) // weights[index] for index in group}
    rates = {index: _rates(claims[index], weights[index]) for index in group}
    speed = [sum(rates[index][axis] for index in group) for axis in range(len(left))]
    queue = sorted(group, key=lambda index: (-full_at[index], index))
    active = set(group)
    level = 0

    def retire(index: int, share: int) -> None:
        active.discard(index)
        shares[index] = share
        for axis, rate in enumerate(rates[index]):
            speed[axis] -= rate

    while queue:
        index = queue[-1]
        if index not in active:
            queue.pop()
            continue
        step, scarce = min(
            (((left[axis] << POINT) // rate, axis) for axis, rate in enumerate(speed) if rate),
            default=(full_at[index] - level, -1),
        )
        satisfied = level + step >= full_at[index]
        step = min(step, full_at[index] - level)
        level += step
        for axis, rate in enumerate(speed):
            left[axis] = max(left[axis] - (rate * step >> POINT), 0)
        if satisfied:
            retire(index, claims[index].limit << POINT)
            continue
        left[scarce] = 0
        for other in [other for other in active if claims[other].demand[scarce]]:
            retire(other, weights[other] * level)


def _rates(claim: Claim, weight: int) -> Vector:
    """How fast each resource is used while the dominant share grows by one per weight."""
    dominant = max(claim.demand)
    if not dominant:
        return (0,) * len(claim.demand)
    return tuple((weight * amount << POINT) // dominant for amount in claim.demand)


def reduced(numerator: int, denominator: int) -> Fraction:
    """A fraction in lowest terms."""
    divisor = gcd(numerator, denominator)
    return numerator // divisor, denominator // divisor
