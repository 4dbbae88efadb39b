"""Forgetting rows that are kept for a time only: decisions and answers to keys.

Entries, audit rows and everything money depends on are never forgotten.
"""

from __future__ import annotations

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors

# What is old is found first and then deleted by its key: each of the two is a plain statement.
OLD_DECISIONS = """
SELECT org_id, decision_id FROM decisions WHERE decided_at < (SELECT ledger_now()) - $1
ORDER BY decided_at LIMIT $2
"""
FORGET_DECISIONS = """
DELETE FROM decisions d USING unnest($1::bigint[], $2::bigint[]) AS old(org_id, decision_id)
WHERE d.org_id = old.org_id AND d.decision_id = old.decision_id
"""
OLD_ANSWERS = """
SELECT org_id, key, created_at FROM idempotency i
WHERE created_at < (SELECT ledger_now()) - $1
    AND NOT (key LIKE 'request %' AND EXISTS ( -- an approval that is still to be finished
        SELECT 1 FROM requests r WHERE r.org_id = i.org_id AND r.state = 1))
ORDER BY created_at LIMIT $2
"""
FORGET_ANSWERS = """
DELETE FROM idempotency i
USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS old(org_id, key, created_at)
WHERE i.org_id = old.org_id AND i.key = old.key AND i.created_at = old.created_at
"""


async def forget_decisions(connection: Connection | Pool, *, older_us: int, limit: int) -> int:
    """Delete a bounded number of old decisions; how many."""
    return await forget(connection, OLD_DECISIONS, FORGET_DECISIONS, older_us, limit)


async def forget_answers(connection: Connection | Pool, *, older_us: int, limit: int) -> int:
    """Delete a bounded number of old answers to keys; how many."""
    return await forget(connection, OLD_ANSWERS, FORGET_ANSWERS, older_us, limit)


async def forget(
    connection: Connection | Pool, found: str, deleted: str, older_us: int, limit: int
) -> int:
    """Delete old rows; returns how many."""
    with driver_errors():
        old = await connection.fetch(found, older_us, limit)
        if not old:
            return 0
        done: str = await connection.execute(deleted, *zip(*old, strict=True))
    return int(done.rpartition(" ")[2])
