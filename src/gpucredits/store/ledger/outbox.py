"""Announcing events that no book makes: of requests, statements and anomalies.

Must not: deliver anything; exports read the table (docs/operating.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gpucredits.store.database.connection import Connection


async def announce(
    db: Connection, org_id: int, kind: str, subject_id: int, payload: Mapping[str, str | int]
) -> None:
    """Add an event in the transaction of what it tells."""
    await db.execute(
        "INSERT INTO outbox (org_id, recorded_at, type, subject_id, payload)"
        " VALUES ($1, ledger_now(), $2, $3, $4::text::jsonb)",
        org_id,
        kind,
        subject_id,
        msgspec.json.encode(payload).decode(),
    )
