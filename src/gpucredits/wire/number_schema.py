"""The JSON schema of amounts.

Owns: saying in a schema which numbers of credits the rules take.
"""

from __future__ import annotations

from typing import Any

from gpucredits.core.money import AMOUNT_MAX, MICROS_PER_CREDIT, format_credits


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
