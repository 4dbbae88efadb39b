"""Use that fades: half of it is forgotten every half-life, in whole numbers.

Owns: the decay of a tenant's past use.
Must not: know where use comes from, or what it means for the order of a queue.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

_BITS: Final = 64  # fractional bits of a factor
_STEPS: Final = 32  # a half-life is cut into 2**32 parts


def _factors() -> tuple[int, ...]:
    """2**-(1/2), 2**-(1/4), 2**-(1/8) ... each the square root of the one before."""
    factors = [isqrt(1 << (2 * _BITS - 1))]
    while len(factors) < _STEPS:
        factors.append(isqrt(factors[-1] << _BITS))
    return tuple(factors)


_FACTORS: Final = _factors()


def decayed(usage: int, *, elapsed_ms: int, half_life_ms: int) -> int:
    """What is left of ``usage`` after ``elapsed_ms``: ``usage * 2**-(elapsed / half-life)``.

    Rounded down; exact at whole half-lives. A half-life of 0 means that use is never forgotten.

    >>> decayed(1_000_000, elapsed_ms=7_000, half_life_ms=7_000)
    500000
    >>> decayed(1_000_000, elapsed_ms=3_500, half_life_ms=7_000)
    707106
    """
    if usage < 0 or elapsed_ms < 0 or half_life_ms < 0:
        raise ValueError("usage, elapsed time and half-life must not be negative")
    if not half_life_ms:
        return usage
    halvings, rest_ms = divmod(elapsed_ms, half_life_ms)
    if halvings > usage.bit_length():
        return 0
    part = (rest_ms << _STEPS) // half_life_ms
    factor = 1 << _BITS
    for step, root in enumerate(_FACTORS, start=1):
        if part >> (_STEPS - step) & 1:
            factor = factor * root >> _BITS
    return usage * factor >> (_BITS + halvings)
