"""Credits as integers of micro-credits, and the only place that rounds.

Owns: text to amount and back, the cumulative charge formula and its inverse.
Must not: use floats, even for display.
"""

from __future__ import annotations

import re

MICROS_PER_CREDIT = 1_000_000
DECIMALS = 6
MS_PER_HOUR = 3_600_000
AMOUNT_MAX = 10**15  # a billion credits in micro-credits: sums of thousands of them fit in a BIGINT

_AMOUNT = re.compile(r"(-?)(\d{1,10})(?:\.(\d{1,6}))?", re.ASCII)


def parse_credits(text: str) -> int:
    """Micro-credits from a decimal string such as ``"12.5"``; ValueError says what is wrong.

    A billion credits, either way, is the most that any amount may be.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"must be a decimal string of at most {format_credits(AMOUNT_MAX)} with at most "
            f'{DECIMALS} digits after the point, such as "12.5"'
        )
    sign, whole, fraction = match.groups()
    micros = int(whole) * MICROS_PER_CREDIT + int((fraction or "").ljust(DECIMALS, "0"))
    if micros > AMOUNT_MAX:
        raise ValueError(f"must be at most {format_credits(AMOUNT_MAX)}")
    return -micros if sign else micros


def format_credits(micros: int) -> str:
    """The shortest decimal string that is exactly ``micros``."""
    if micros < 0:
        return f"-{format_credits(-micros)}"
    whole, rest = micros // MICROS_PER_CREDIT, micros % MICROS_PER_CREDIT
    return f"{whole}.{str(MICROS_PER_CREDIT + rest)[1:].rstrip('0')}" if rest else str(whole)


def cost(rate_per_hour: int, used_ms: int) -> int:
    """What ``used_ms`` of use costs in all at ``rate_per_hour`` (GPUs times price), rounded down.

    The formula is cumulative: a bill is always the cost of the total time, so splitting, losing
    or repeating reports never changes it.
    """
    return rate_per_hour * used_ms // MS_PER_HOUR


def time_covered_ms(rate_per_hour: int, amount: int) -> int:
    """The longest use in ms whose cost is at most ``amount``; the rate must be positive."""
    return ((amount + 1) * MS_PER_HOUR - 1) // rate_per_hour
