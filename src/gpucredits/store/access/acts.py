"""What everything with an idempotency key needs of the database: locks of orgs, records of keys.

Must not: touch money; the ledger loads and saves the records of a batch with the batch's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import asyncpg

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import raise_key_conflict


class KeyRecord(NamedTuple):
    """A hash of what was asked under a key, and the answer; empty where the key is a batch's."""

    request_hash: bytes
    outcome: bytes


SYSTEM_ID: Final = 0  # the number of what belongs to no org


async def lock_orgs(db: Connection, org_ids: list[int]) -> None:
    """Wait for the turns of the system and of orgs, in order.

    The locks last as long as the transaction.
    """
    if SYSTEM_ID in org_ids:
        await db.execute("SELECT FROM system_state FOR NO KEY UPDATE")
    orgs = [org_id for org_id in org_ids if org_id != SYSTEM_ID]
    if orgs:
        await db.execute(
            "SELECT FROM orgs WHERE org_id = ANY($1::bigint[]) ORDER BY org_id FOR NO KEY UPDATE",
            orgs,
        )


async def find_records(db: Connection, org_ids: Sequence[int], key: str) -> dict[int, KeyRecord]:
    """The records of a key in some orgs."""
    rows = await db.fetch(
        "SELECT org_id, request_hash, outcome FROM idempotency"
        " WHERE org_id = ANY ($1::bigint[]) AND key = $2",
        org_ids,
        key,
    )
    return {row["org_id"]: KeyRecord(row["request_hash"], row["outcome"]) for row in rows}


async def insert_records(
    db: Connection, org_ids: Sequence[int], key: str, record: KeyRecord
) -> None:
    """Store the answer to a key in some orgs; Conflict when the key was stored in the meantime."""
    try:
        await db.executemany(  # each statement is of one org
            "INSERT INTO idempotency (org_id, key, request_hash, outcome, created_at)"
            " VALUES ($1, $2, $3, $4, ledger_now())",
            [(org_id, key, *record) for org_id in sorted(org_ids)],
        )
    except asyncpg.UniqueViolationError as error:
        raise_key_conflict(error)


async def forget_record(db: Connection, org_id: int, key: str, *, outcome: bytes) -> None:
    """Forget a key that has this answer, so that the key can be used again."""
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
