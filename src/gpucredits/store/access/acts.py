"""What every administrative act needs of the database: the org's lock and the key's record.

Must not: touch money; service.write has its own batched forms of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import key_conflicts


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What was asked under a key, and the answer."""

    request_hash: bytes
    outcome: bytes


async def lock_orgs(db: Connection, org_ids: list[int]) -> None:
    """Wait for the orgs' turns, in order; the locks last as long as the transaction."""
    await db.execute(
        "SELECT FROM orgs WHERE org_id = ANY($1::int[]) ORDER BY org_id FOR NO KEY UPDATE", org_ids
    )


async def find_record(db: Connection, org_id: int, key: str) -> KeyRecord | None:
    """The record of a key."""
    row = await db.fetchrow(
        "SELECT request_hash, outcome FROM idempotency WHERE org_id = $1 AND key = $2", org_id, key
    )
    return None if row is None else KeyRecord(row["request_hash"], row["outcome"])


async def insert_record(
    db: Connection, org_id: int, key: str, *, request_hash: bytes, outcome: bytes
) -> None:
    """Remember the answer given under a key; Conflict when it was bound in the meantime."""
    with key_conflicts():
        await db.execute(
            "INSERT INTO idempotency (org_id, key, request_hash, outcome, created_at)"
            " VALUES ($1, $2, $3, $4, ledger_now())",
            org_id,
            key,
            request_hash,
            outcome,
        )


async def forget_record(db: Connection, org_id: int, key: str, *, outcome: bytes) -> None:
    """Forget a key under which this was answered, so that it is as good as new."""
    await db.execute(
        "DELETE FROM idempotency WHERE org_id = $1 AND key = $2 AND outcome = $3",
        org_id,
        key,
        outcome,
    )


async def find_account(db: Connection, org_id: int, path: str) -> int | None:
    """The number of an account within its org."""
    number: int | None = await db.fetchval(
        "SELECT account_id FROM accounts WHERE org_id = $1 AND path = $2", org_id, path
    )
    return number
