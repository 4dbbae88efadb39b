"""Which part of the saving statement writes the settlements of a batch."""

from __future__ import annotations

import pytest

from gpucredits.core.entry import Entry, EntryType
from gpucredits.store.book.changes import FEW_SETTLEMENTS, Changes, add_entries, add_settlements

ORG, NOW = 7, 1_000
RESERVED = Entry(1, NOW, EntryType.RESERVE, 3, 50, reservation_id=9)


def settlement(number: int) -> Entry:
    """What a lease is charged when it reports or ends."""
    return Entry(
        number, NOW, EntryType.SETTLE, 3, 5, reserve=-45, grant_id=4, reservation_id=9, seq=1
    )


@pytest.mark.parametrize(
    ("settled", "others", "written"),
    [
        (2, 1, {"new_entries": 3}),
        (FEW_SETTLEMENTS, 1, {"new_entries": FEW_SETTLEMENTS + 1}),
        (FEW_SETTLEMENTS + 1, 1, {"new_entries": 1, "new_settlements": FEW_SETTLEMENTS + 1}),
        (2, 0, {"new_settlements": 2}),
        (0, 1, {"new_entries": 1}),
        (0, 0, {}),
    ],
)
def test_few_settlements_go_with_other_entries(
    settled: int, others: int, written: dict[str, int]
) -> None:
    """Every entry is written once, and a few settlements take no part of their own."""
    changes = Changes()
    entries = [RESERVED] * others + [settlement(number) for number in range(2, 2 + settled)]
    add_entries(changes, ORG, NOW, entries)
    add_settlements(changes)
    assert {name: len(rows) for name, rows in changes.rows.items()} == written


def test_a_settlement_says_the_same_in_either_part() -> None:
    """The general row has what the short one leaves to the statement."""
    alone, beside = Changes(), Changes()
    add_entries(alone, ORG, NOW, [settlement(2)])
    add_entries(beside, ORG, NOW, [RESERVED, settlement(2)])
    for changes in (alone, beside):
        add_settlements(changes)
    assert alone.rows["new_settlements"] == [(ORG, NOW, 2, 3, 5, -45, 4, 9, 1)]
    assert beside.rows["new_entries"][1] == (
        *(ORG, NOW, 2, NOW, EntryType.SETTLE, 3, 5, -45, 4),
        *(0, 0, 9, 1),
    )
