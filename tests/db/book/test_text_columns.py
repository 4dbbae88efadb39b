"""Columns of texts reach the database as they are, whatever they hold."""

from __future__ import annotations

import pytest

from gpucredits.store.book.save import texts
from support.scenes.scene import Scene, play

HARD = [
    '"',
    "\\",
    '\\"',
    "\n",
    "\t\\n",
    "\x01",
    "\x7f",
    "{}",
    "[a,b]",
    "é😀",
    "",
    " ",
    "null",
    "NULL",
]


@pytest.mark.parametrize(
    "column",
    [(), ("a",), (None,), ('{"a":"b\\"c"}', None, "d"), tuple(HARD), ("plain", "\r", None)],
    ids=["none", "one", "null", "json", "hard", "control"],
)
def test_texts_are_read_as_they_were_sent(database: str, column: tuple[str | None, ...]) -> None:
    """Also control characters, which JSON writes otherwise than array literals do."""

    async def act(stage: Scene) -> None:
        found = await stage.pool.fetchval("SELECT $1::text::text[]", texts(column))
        assert tuple(found) == column

    play(database, act)
