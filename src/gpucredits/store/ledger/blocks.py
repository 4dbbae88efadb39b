"""Seals: hash-chained blocks over an org's entries, and the newest links of all chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import driver_errors

BEHIND = """
SELECT o.org_id FROM orgs o
LEFT JOIN LATERAL (
    SELECT b.last_entry_id, b.sealed_at FROM blocks b WHERE b.org_id = o.org_id
    ORDER BY b.block_id DESC LIMIT 1
) AS sealed ON true
WHERE o.next_entry_id - 1 > coalesce(sealed.last_entry_id, 0)
    AND (o.next_entry_id - 1 - coalesce(sealed.last_entry_id, 0) >= $2
        OR coalesce(sealed.sealed_at, 0) <= (SELECT ledger_now()) - $3::bigint)
ORDER BY o.next_entry_id - coalesce(sealed.last_entry_id, 0) DESC LIMIT $1
"""
SEAL = """
WITH span AS (
    SELECT o.org_id, coalesce(b.block_id, 0) + 1 AS block_id,
        coalesce(b.last_entry_id, 0) + 1 AS first_id,
        least(o.next_entry_id - 1, coalesce(b.last_entry_id, 0) + $2) AS last_id,
        coalesce(b.hash, ''::bytea) AS previous
    FROM orgs o
    LEFT JOIN LATERAL (
        SELECT block_id, last_entry_id, hash FROM blocks WHERE blocks.org_id = o.org_id
        ORDER BY block_id DESC LIMIT 1
    ) AS b ON true
    WHERE o.org_id = ANY ($1::bigint[])
), sealed AS (
    INSERT INTO blocks (org_id, block_id, first_entry_id, last_entry_id, previous_hash, hash,
        sealed_at)
    SELECT org_id, block_id, first_id, last_id, previous,
        block_hash(org_id, first_id, last_id, previous), (SELECT ledger_now())
    FROM span WHERE last_id >= first_id
    ON CONFLICT DO NOTHING
    RETURNING org_id, last_entry_id - first_entry_id + 1 AS entries
)
SELECT org_id, entries FROM sealed
"""


HEADS = """
(SELECT o.org_id, newest.* FROM orgs o CROSS JOIN LATERAL (
    SELECT b.block_id, b.last_entry_id, encode(b.hash, 'hex'), 'entries' FROM blocks b
    WHERE b.org_id = o.org_id ORDER BY b.block_id DESC LIMIT 1
) AS newest ORDER BY o.org_id)
UNION ALL
SELECT org_id, place, 0, encode(hash, 'hex'), 'audit' FROM audit_heads
"""
LOST = """
SELECT w.chain, w.org_id, w.block_id, w.hash AS exported,
    encode(coalesce(b.hash, a.hash), 'hex') AS found
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS w(chain, org_id, block_id, hash)
LEFT JOIN blocks b ON w.chain = 'entries' AND b.org_id = w.org_id AND b.block_id = w.block_id
LEFT JOIN audit_log a ON w.chain = 'audit' AND a.org_id = w.org_id AND a.place = w.block_id
WHERE encode(coalesce(b.hash, a.hash), 'hex') IS DISTINCT FROM w.hash LIMIT $5
"""


class Head(NamedTuple):
    """The newest link of an org's chain; kept elsewhere, it shows whether a tail was cut off.

    Entries are linked in blocks, acts of the audit log one by one.
    """

    org_id: int
    block_id: int
    last_entry_id: int
    hash: str
    chain: str = "entries"


async def chain_heads(connection: Connection) -> list[Head]:
    """The newest block of entries and the newest act of every org that has them."""
    with driver_errors():
        return [Head(*row) for row in await connection.fetch(HEADS)]


async def lost_heads(
    connection: Connection, heads: Sequence[Head], *, limit: int
) -> list[dict[str, Any]]:
    """Exported heads that the chain no longer has unchanged."""
    names = ("chain", "org_id", "block_id", "hash")
    columns = [[getattr(head, name) for head in heads] for name in names]
    with driver_errors():
        return [dict(row) for row in await connection.fetch(LOST, *columns, limit)]


async def orgs_unsealed(
    connection: Connection, *, entries_min: int, age_us: int, limit: int
) -> list[int]:
    """Orgs with entries that no block covers, the furthest behind first.

    With fewer than ``entries_min`` of them, only once their last block is so old.
    """
    with driver_errors():
        rows = await connection.fetch(BEHIND, limit, entries_min, age_us)
    return [row["org_id"] for row in rows]


async def seal(connection: Connection, org_ids: list[int], *, entries_max: int) -> dict[int, int]:
    """Seal one more block of each org; how many entries that covered, by org.

    Two at once seal the same block, and one of them does nothing.
    """
    with driver_errors():
        return dict(await connection.fetch(SEAL, org_ids, entries_max))
