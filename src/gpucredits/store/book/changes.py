"""The rows that a batch writes, collected for one statement.

Owns: the parts of that statement by name, one for each write that tables declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucredits.store.book.sql_batch import Part, part
from gpucredits.store.book.tables import TABLES

LATE_USE = part(
    "new_late_use",
    "integer bigint bigint bigint bigint",
    """INSERT INTO usage_events (org_id, job_id, node, seq, reservation_id, is_late, used_ms,
        recorded_at)
    SELECT x.org_id, r.job_id, r.node, x.seq, x.reservation_id, true, x.used_ms, x.recorded_at
    FROM ROWS AS x(org_id, reservation_id, seq, used_ms, recorded_at)
    JOIN reservations r ON r.org_id = x.org_id AND r.reservation_id = x.reservation_id
    ON CONFLICT DO NOTHING""",
)
PARTS = {write.name: table.part(write.name) for table in TABLES for write in table.writes}
PARTS[LATE_USE.name] = LATE_USE


@dataclass(slots=True)
class Changes:
    """Rows to write, one list for each part of the statement, in the order of their columns.

    What nearly every heartbeat writes has lists of its own.
    """

    rows: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    renewals: list[Sequence[Any]] = field(default_factory=list)  # two of each heartbeat
    settlements: list[Sequence[Any]] = field(default_factory=list)

    def add(self, name: str, row: Sequence[Any]) -> None:
        """One more row for a part."""
        rows = self.rows.get(name)
        if rows is None:
            self.rows[name] = [row]
        else:
            rows.append(row)

    def in_order(self) -> dict[Part, list[Sequence[Any]]]:
        """All rows by part, in one order whatever came first: each order is planned anew."""
        return {PARTS[name]: rows for name, rows in sorted(self.rows.items())}
