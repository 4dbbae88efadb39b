"""Balances of the past: the nearest stored snapshot and the entries since.

Owns: snapshots, and the sums of entries by effective time.
Must not: know what the clock would make due (the reader adds that).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import driver_errors

# Ids follow the order of recording, so an instant is a place among the entries of an org. Before
# that place, an account's last snapshot and the entries since count. After it, only entries that
# took effect earlier count: the clock alone made them, and an index has them.
SUMS_AT = """
WITH place AS MATERIALIZED (SELECT entry_at($1, $3::bigint + 1) AS first_id), moved AS (
    SELECT m.available, m.reserved, m.spent FROM unnest($2::bigint[]) AS a(account_id)
    CROSS JOIN place p
    LEFT JOIN LATERAL (
        SELECT s.entry_id, s.available, s.reserved, s.spent FROM snapshots s
        WHERE s.org_id = $1 AND s.account_id = a.account_id AND s.entry_id < p.first_id
            AND s.latest_effective_at <= $3
        ORDER BY s.entry_id DESC LIMIT 1
    ) AS base ON true
    CROSS JOIN LATERAL (
        SELECT base.available, base.reserved, base.spent
        UNION ALL
        SELECT e.available, e.reserved, e.spent FROM entry_moves e
        WHERE e.org_id = $1 AND e.account_id = a.account_id AND e.effective_at <= $3
            AND e.entry_id > coalesce(base.entry_id, 0) AND e.entry_id < p.first_id
    ) AS m
    UNION ALL
    SELECT e.available, e.reserved, e.spent FROM place p
    CROSS JOIN LATERAL (
        SELECT l.entry_id FROM entries l WHERE l.org_id = $1 AND l.effective_at < l.recorded_at
            AND numrange(l.org_id * 1e19 + l.effective_at, l.org_id * 1e19 + l.recorded_at)
                @> $1::bigint * 1e19 + $3::bigint
            AND l.entry_id >= p.first_id OFFSET 0
    ) AS late
    CROSS JOIN LATERAL (
        SELECT m.available, m.reserved, m.spent FROM entry_moves m
        WHERE m.org_id = $1 AND m.entry_id = late.entry_id AND m.effective_at <= $3
            AND m.account_id = ANY ($2::bigint[]) OFFSET 0 -- one by one
    ) AS e
)
SELECT coalesce(sum(available), 0)::bigint, coalesce(sum(reserved), 0)::bigint,
    coalesce(sum(spent), 0)::bigint
FROM moved
"""
BEHIND = """
SELECT o.org_id FROM orgs o LEFT JOIN snapshot_marks m ON m.org_id = o.org_id
WHERE o.next_entry_id - 1 - coalesce(m.entry_id, 0) >= greatest($1, coalesce(m.enough, 0))
ORDER BY o.org_id LIMIT $2
"""
MARK = """
INSERT INTO snapshot_marks (org_id, entry_id) VALUES ($1, 0)
ON CONFLICT (org_id) DO UPDATE SET entry_id = snapshot_marks.entry_id
RETURNING entry_id
"""
MOVED = """
SELECT count(DISTINCT account_id) FROM entry_moves
WHERE org_id = $1 AND entry_id > $2 AND entry_id <= $3
"""
TAKE = """
WITH segment AS (
    SELECT account_id, max(entry_id) AS entry_id, max(recorded_at) AS recorded_at,
        max(effective_at) AS latest, min(effective_at) AS earliest,
        sum(available) AS available, sum(reserved) AS reserved, sum(spent) AS spent
    FROM entry_moves WHERE org_id = $1 AND entry_id > $2 AND entry_id <= $3
    GROUP BY account_id
), added AS (
    INSERT INTO snapshots (org_id, account_id, entry_id, recorded_at, latest_effective_at,
        earliest_effective_at, available, reserved, spent)
    SELECT $1, s.account_id, s.entry_id, s.recorded_at,
        greatest(s.latest, coalesce(p.latest_effective_at, s.latest)), s.earliest,
        s.available + coalesce(p.available, 0), s.reserved + coalesce(p.reserved, 0),
        s.spent + coalesce(p.spent, 0)
    FROM segment s
    LEFT JOIN LATERAL (
        SELECT latest_effective_at, available, reserved, spent FROM snapshots p
        WHERE p.org_id = $1 AND p.account_id = s.account_id ORDER BY p.entry_id DESC LIMIT 1
    ) AS p ON true
    RETURNING 1
), marked AS (
    UPDATE snapshot_marks SET entry_id = $3, enough = 0 WHERE org_id = $1
)
SELECT count(*) FROM added
"""


class Buckets(NamedTuple):
    """Sums of entries."""

    available: int
    reserved: int
    spent: int


async def sums_at(
    connection: Connection, org_id: int, account_ids: Sequence[int], *, at: int
) -> Buckets:
    """The buckets of accounts, added up, by the entries that took effect by ``at``."""
    return Buckets(*await connection.fetchrow(SUMS_AT, org_id, account_ids, at))


async def orgs_behind(connection: Connection, *, entries: int, limit: int) -> list[int]:
    """Orgs with at least so many entries since their last snapshots, and enough for new ones."""
    with driver_errors():
        return [row["org_id"] for row in await connection.fetch(BEHIND, entries, limit)]


async def take_snapshots(
    connection: Connection, org_id: int, *, entries_each: int, entries_max: int
) -> int:
    """Store the sums of every account that has entries since the last time; how many there were.

    Not before there are ``entries_each`` entries for each of those accounts, so that snapshots
    stay few beside entries; but ``entries_max`` always are enough, and no more are looked at.
    Safe to run twice at once: the mark's row is locked, and the second finds nothing left to do.
    """
    with driver_errors():
        async with connection.transaction():
            mark = await connection.fetchval(MARK, org_id)
            head = await connection.fetchval(
                "SELECT next_entry_id - 1 FROM orgs WHERE org_id = $1", org_id
            )
            if head <= mark:
                return 0
            last = min(head, mark + entries_max)
            moved = await connection.fetchval(MOVED, org_id, mark, last)
            enough = min(moved * entries_each, entries_max)
            if last - mark < enough:  # fewer accounts they will not become: no need to look sooner
                await connection.execute(
                    "UPDATE snapshot_marks SET enough = $2 WHERE org_id = $1", org_id, enough
                )
                return 0
            taken: int = await connection.fetchval(TAKE, org_id, mark, last)
    return taken
