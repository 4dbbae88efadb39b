"""The JSON schemas of amounts of credits and of numbers of GPUs.

Owns: saying in a schema which numbers the rules take.
"""

from __future__ import annotations

from typing import Any

from gpucredits.core.money import (
    AMOUNT_MAX,
    MICROS_PER_CREDIT,
    MILLI_PER_GPU,
    format_credits,
    format_gpus,
)

GPU_DIGITS = 10  # before the point, leading zeros included


def number_schema(
    description: str, *, most: int = AMOUNT_MAX, is_positive: bool = False
) -> dict[str, Any]:
    """The schema of a number of credits up to ``most``, a power of ten: the rule in other words."""
    largest, digits = format_credits(most), len(format_credits(AMOUNT_MAX))
    zeros = digits - len(largest)
    less = rf"0{{0,{zeros + 1}}}[0-9]{{1,{len(largest) - 1}}}(\.[0-9]{{1,6}})?"
    text = rf"^({less}|0{{0,{zeros}}}{largest}(\.0{{1,6}})?)$"
    if is_positive:
        text = rf"^(?!0+(\.0+)?$){text[1:]}"
    least = {"exclusiveMinimum": 0} if is_positive else {"minimum": 0}
    number = {"type": "number", **least, "maximum": most // MICROS_PER_CREDIT}
    return {
        "anyOf": [{"type": "string", "pattern": text}, number],
        "description": f"{description} At most {largest}, with at most 6 decimals.",
        "examples": ["12.5"],
    }


def gpus_schema(most: int, *, is_positive: bool = False) -> dict[str, Any]:
    """The schema of a number of GPUs up to ``most`` thousandths, a power of ten."""
    largest = format_gpus(most)
    zeros = GPU_DIGITS - len(largest)
    less = rf"0{{0,{zeros + 1}}}[0-9]{{1,{len(largest) - 1}}}(\.[0-9]{{1,3}})?"
    text = rf"^({less}|0{{0,{zeros}}}{largest}(\.0{{1,3}})?)$"
    least: dict[str, Any] = {"minimum": 0}
    if is_positive:
        text = rf"^(?!0+(\.0+)?$){text[1:]}"
        least = {"exclusiveMinimum": 0}
    number = {"type": "number", **least, "maximum": most // MILLI_PER_GPU}
    return {
        "anyOf": [number, {"type": "string", "pattern": text}],
        "description": f"GPUs: a number, or a decimal string. At most {largest}, "
        "with at most 3 decimals.",
        "examples": [2, 0.46, "0.46"],
    }
