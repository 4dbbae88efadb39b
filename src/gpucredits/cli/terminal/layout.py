"""How wide the columns of a table are, so that no word and no number is ever cut or folded.

Owns: choosing widths for the room there is. Cells wrap between words only. A table that has no room
even then has no layout: its rows are shown as blocks, a line for each fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from rich.cells import cell_len

GAP: Final = 2  # blanks between two columns
LINES_MAX: Final = 6  # of one row; a block reads better than a taller one
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", re.ASCII)


def column_widths(table: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """The widths of the columns of a table (its names are a row too), or None if none will do.

    Prose gives way first, the widest column before others. Dates stand above their times only
    where that is not enough.
    """
    columns = list(zip(*table, strict=True))
    natural = [max(cell_len(cell) for cell in column) for column in columns]
    least = [max(_longest(cell) for cell in column) for column in columns]
    dated = [
        place
        for place, column in enumerate(columns)
        if any(_INSTANT.fullmatch(cell) for cell in column)
    ]
    inner = room - GAP * (len(columns) - 1)
    for number in range(len(dated) + 1):
        stacked = set(dated[:number])
        widths = [least[n] if n in stacked else width for n, width in enumerate(natural)]
        floors = [widths[n] if n in dated else low for n, low in enumerate(least)]
        if _shrink(widths, floors, inner) and _height(table, widths) <= LINES_MAX:
            return widths
    return None


def wrapped(text: str, room: int) -> list[str]:
    """A text in lines that break between words; a word that is longer than a line stays whole."""
    return wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _shrink(widths: list[int], floors: Sequence[int], inner: int) -> bool:
    """Take width from the widest column that can give some, until all fit."""
    while sum(widths) > inner:
        givers = [place for place, width in enumerate(widths) if width > floors[place]]
        if not givers:
            return False
        widths[max(givers, key=lambda place: widths[place])] -= 1
    return True


def _longest(cell: str) -> int:
    """The width of the longest word; blanks before the first belong to it."""
    lead = len(cell) - len(cell.lstrip())
    words = [cell_len(word) for word in cell.split()]
    return max([lead + words[0], *words[1:]]) if words else 0


def _height(table: Sequence[Sequence[str]], widths: Sequence[int]) -> int:
    return max(
        len(wrapped(cell, width)) for row in table for cell, width in zip(row, widths, strict=True)
    )
