"""The rows that a batch writes, collected for one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucredits.store.book.sql_batch import Part


@dataclass(slots=True)
class Changes:
    """Rows to write, one list for each part of the statement, in the order of their columns.

    What nearly every heartbeat writes has lists of its own.
    """

    rows: dict[Part, list[Sequence[Any]]] = field(default_factory=dict)
    renewals: list[Sequence[Any]] = field(default_factory=list)  # two of each heartbeat
    settlements: list[Sequence[Any]] = field(default_factory=list)

    def add(self, kind: Part, row: Sequence[Any]) -> None:
        """One more row of a kind."""
        rows = self.rows.get(kind)
        if rows is None:
            self.rows[kind] = [row]
        else:
            rows.append(row)

    def in_order(self) -> dict[Part, list[Sequence[Any]]]:
        """All of them, in one order whatever came first: an order is a statement to be planned."""
        return dict(sorted(self.rows.items(), key=name_of))


def name_of(item: tuple[Part, object]) -> str:
    """What parts are put in order by."""
    return item[0].name
