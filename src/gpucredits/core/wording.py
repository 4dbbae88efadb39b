"""Numbers in sentences: one credit, two credits; one is, two are.

Owns: the singular. Must not: know what is counted.
"""

from __future__ import annotations

from gpucredits.core.money import format_credits


def count(number: int | str, thing: str) -> str:
    """So many of something, such as 1 GPU or 2 GPUs."""
    return f"{number} {thing}" if is_one(number) else f"{number} {thing}s"


def count_of(number: int | str, things: str) -> str:
    """The same for the name of a unit, which is a plural: 1 GPU of GPUs."""
    return count(number, things.removesuffix("s"))


def count_credits(micros: int) -> str:
    """So many credits, such as 1 credit or 1.5 credits."""
    return count(format_credits(micros), "credit")


def be(number: int | str) -> str:
    """What so many of something do: one is, two are."""
    return "is" if is_one(number) else "are"


def is_one(number: int | str) -> bool:
    """Whether it takes the singular; 1.5 and 0 do not."""
    return str(number) == "1"
