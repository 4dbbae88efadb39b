"""One statement out of several parts, so that a batch of changes is one round trip.

Owns: how arrays of columns become the rows of an UPDATE or INSERT, and how they travel. The texts
are constants; values travel only as parameters.

Columns of numbers travel as array literals: the driver looks at every element of an array to see
whether it is an array itself, and writing the literal costs a third of that on both sides together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

encode = msgspec.json.Encoder().encode  # five times as fast as str()
ROWS = "ROWS"  # in a part's text: the rows that its columns make
NUMBERS = frozenset({"integer", "bigint", "boolean"})
CODE = "code"  # a type of column: an enum's number
LISTS = "lists"  # a type of column: array literals of numbers, such as {1,2}

CASTS = {CODE: "::text::smallint[]", LISTS: "::text::text[]"} | {
    kind: f"::text::{kind}[]" for kind in NUMBERS
}


@dataclass(frozen=True, slots=True, eq=False)
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
    return f"WITH {', '.join(texts_of(parts))} SELECT 1"


def texts_of(parts: tuple[Part, ...], condition: str = "", number: int = 0) -> list[str]:
    """Each part with its rows in their place, taking parameters after those that come first.

    Columns are taken apart side by side, in a SELECT. As a function in FROM each of them would be
    stored by itself before the first row is made, which costs a tenth of what the statement does.
    """
    texts = []
    for each in parts:
        places = []
        for kind in each.types:
            number += 1
            places.append(f"unnest(${number}{CASTS.get(kind, f'::{kind}[]')})")
        rows = f"(SELECT {', '.join(places)} {condition})"
        texts.append(f"{each.name} AS ({each.sql.replace(ROWS, rows)})")
    return texts


def parameters(kind: Part, rows: Iterable[Sequence[Any]]) -> list[object]:
    """The columns of a part's rows, as its statement takes them."""
    values: list[object] = []
    for name, column in zip(kind.types, zip(*rows, strict=True), strict=True):
        if name in NUMBERS or name == CODE:
            values.append(numbers(column))
        elif name == LISTS:
            values.append('{"' + '","'.join(column) + '"}')
        else:
            values.append(column)
    return values


def numbers(column: Sequence[int]) -> str:
    """Integers, booleans or numbers of enums as an array literal."""
    return f"{{{encode(column)[1:-1].decode()}}}"
