"""One statement out of several parts, so that a batch of changes is one round trip.

Owns: how arrays of columns become the rows of an UPDATE or INSERT. The texts are constants; values
travel only as parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

ROWS = "ROWS"  # in a part's text: the rows that its columns make


@dataclass(frozen=True, slots=True)
class Part:
    """A change of one table: its name in the statement, its columns' types, its text."""

    name: str
    types: tuple[str, ...]
    sql: str


def part(name: str, types: str, sql: str) -> Part:
    """A part whose column types are named in one string."""
    return Part(name, tuple(types.split()), sql)


@cache
def statement(parts: tuple[Part, ...]) -> str:
    """The text that makes all the changes at once, in whatever order the database likes."""
    number = 0
    texts = []
    for each in parts:
        places = []
        for kind in each.types:
            number += 1
            places.append(f"${number}::{kind}[]")
        rows = f"unnest({', '.join(places)})"
        texts.append(f"{each.name} AS ({each.sql.replace(ROWS, rows)})")
    return f"WITH {', '.join(texts)} SELECT 1"
