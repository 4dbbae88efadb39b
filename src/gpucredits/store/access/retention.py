"""Forgetting what is kept for a time only: decisions and answers to keys.

Entries, audit rows and everything money depends on are never forgotten.
"""

from __future__ import annotations

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors

FORGET_DECISIONS = """
WITH gone AS (
    DELETE FROM decisions WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM decisions WHERE decided_at < (SELECT ledger_now()) - $1
        ORDER BY decided_at LIMIT $2))
    RETURNING 1
) SELECT count(*) FROM gone
"""
FORGET_ANSWERS = """
WITH gone AS (
    DELETE FROM idempotency WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency i WHERE created_at < (SELECT ledger_now()) - $1
        AND NOT (key LIKE 'request %' AND EXISTS ( -- an approval that is still to be finished
            SELECT 1 FROM requests r WHERE r.org_id = i.org_id AND r.state = 1))
        ORDER BY created_at LIMIT $2))
    RETURNING 1
) SELECT count(*) FROM gone
"""


async def forget_decisions(connection: Connection | Pool, *, older_us: int, limit: int) -> int:
    """Delete a bounded number of old decisions; how many."""
    with driver_errors():
        gone: int = await connection.fetchval(FORGET_DECISIONS, older_us, limit)
    return gone


async def forget_answers(connection: Connection | Pool, *, older_us: int, limit: int) -> int:
    """Delete a bounded number of old answers to keys; how many."""
    with driver_errors():
        gone: int = await connection.fetchval(FORGET_ANSWERS, older_us, limit)
    return gone
