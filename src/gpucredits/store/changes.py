"""The rows that a batch writes, collected for one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucredits.store.statement import Part


@dataclass(slots=True)
class Changes:
    """Rows to write, one list for each part of the statement, in the order of their columns."""

    rows: dict[Part, list[Sequence[Any]]] = field(default_factory=dict)

    def add(self, kind: Part, row: Sequence[Any]) -> None:
        """One more row of a kind."""
        rows = self.rows.get(kind)
        if rows is None:
            self.rows[kind] = [row]
        else:
            rows.append(row)
