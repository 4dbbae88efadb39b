"""Keys that are bound to what is asked under them before any of it is done.

Owns: the rows that say so; they have no outcome, since the parts of what was asked have theirs.
Must not: know what is asked.
"""

from __future__ import annotations

from gpucredits.store.database.connection import Connection

# No org is locked, so that nobody's heartbeats wait for a batch over many orgs. Who else writes
# down the same key meets this at the table's own key, and decides again. What is there stays.
BIND = """
WITH bound AS (
    INSERT INTO idempotency (org_id, key, request_hash, outcome, created_at)
    SELECT o, $2, $3, ''::bytea, ledger_now() FROM unnest($1::int[]) AS o ORDER BY o
    ON CONFLICT (org_id, key) DO NOTHING RETURNING 1
) SELECT count(*) FROM bound
"""
BOUND_TO_OTHERS = """
SELECT EXISTS (SELECT FROM idempotency
    WHERE org_id = ANY ($1::int[]) AND key = $2 AND request_hash <> $3)
"""


async def bind(db: Connection, org_ids: list[int], key: str, *, request_hash: bytes) -> bool:
    """Bind a key in every one of some orgs; False when it is bound to another request in one.

    Part of a transaction, which is to be rolled back when it could not be bound.
    """
    new: int = await db.fetchval(BIND, org_ids, key, request_hash)
    if new == len(org_ids):
        return True
    is_taken: bool = await db.fetchval(BOUND_TO_OTHERS, org_ids, key, request_hash)
    return not is_taken
