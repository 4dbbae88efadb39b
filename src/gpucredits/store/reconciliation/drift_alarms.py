"""Rows of alarms of drift: one for a lease, or for an account's day.

Owns: the rows of drift_alarms.
Must not: judge drift.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgFilter, OrgRows


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRow:
    """An alarm with the numbers behind it; ``reservation_id`` is 0 for an account's day."""

    org_id: int
    account_id: int
    account: str
    starts_at: int
    drift: int
    settled: int
    sentence: str
    evidence: dict[str, Any]
    reservation_id: int = 0
    job_id: str = ""
    alarm_id: int = 0
    raised_at: int = 0
    is_open: bool = True
    acknowledged_by: str = ""
    acknowledged_at: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFilter(OrgFilter):
    """Which alarms to list."""

    is_open: bool | None = None


def _read(row: Any) -> AlarmRow:
    return AlarmRow(**dict(row) | {"evidence": msgspec.json.decode(row["evidence"])})


ALARMS = OrgRows("drift_alarms", AlarmRow, "alarm_id", read=_read)


async def insert(db: Connection, row: AlarmRow) -> int | None:
    """Insert an alarm; its number, or None if it was raised before."""
    known = await db.fetchval(
        "SELECT true FROM drift_alarms WHERE org_id = $1 AND account_id = $2"
        " AND reservation_id = $3 AND starts_at = $4",
        row.org_id,
        row.account_id,
        row.reservation_id,
        row.starts_at,
    )
    if known:
        return None
    values = asdict(row) | {"evidence": msgspec.json.encode(row.evidence).decode()}
    once = "org_id, account_id, reservation_id, starts_at"
    return await ALARMS.add(db, values, "alarms", clock="raised_at", once=once)


async def acknowledge(db: Connection, row: AlarmRow, by: str, note: str) -> None:
    """Record who has looked at an alarm."""
    await db.execute(
        "UPDATE drift_alarms SET is_open = false, acknowledged_by = $3,"
        " acknowledged_at = ledger_now(), note = $4 WHERE org_id = $1 AND alarm_id = $2",
        row.org_id,
        row.alarm_id,
        by,
        note,
    )
