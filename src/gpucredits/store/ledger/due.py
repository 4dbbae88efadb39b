"""Finding accounts for which the clock has made something due that is not written down.

Orgs are walked in order, a bounded number at a time; of each, the accounts that are longest due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors

DUE = """
WITH walked AS MATERIALIZED (
    SELECT org_id FROM orgs WHERE org_id > $1 ORDER BY org_id LIMIT $2
)
SELECT w.org_id, d.account_id, false AS is_last FROM walked w
CROSS JOIN LATERAL (
    SELECT a.account_id FROM accounts a
    WHERE a.org_id = w.org_id AND a.due_at <= (SELECT ledger_now()) - $4::bigint
    ORDER BY a.due_at LIMIT $3
) AS d
UNION ALL
SELECT max(org_id), 0, true FROM walked HAVING count(*) = $2
"""
WARNINGS = """
WITH walked AS MATERIALIZED (
    SELECT org_id, budget_id, account_id, warn_percent FROM budgets
    WHERE (org_id, budget_id) > ($1::bigint, $2::bigint)
    ORDER BY org_id, budget_id LIMIT $3
), last AS (
    SELECT org_id, budget_id FROM walked ORDER BY org_id DESC, budget_id DESC LIMIT 1
)
SELECT w.org_id, w.account_id, false AS is_last FROM walked w
CROSS JOIN LATERAL (
    SELECT * FROM budget_periods v WHERE v.org_id = w.org_id AND v.budget_id = w.budget_id
    ORDER BY v.starts_at DESC LIMIT 1
) AS p
JOIN grants g ON g.org_id = p.org_id AND g.grant_id = p.grant_id
WHERE w.warn_percent <> '{}' AND p.ends_at > (SELECT ledger_now()) AND EXISTS (
    SELECT 1 FROM unnest(w.warn_percent) AS threshold(percent)
    WHERE threshold.percent > p.warned_percent
        AND (p.allowance - g.remaining)::numeric * 100 >= p.allowance::numeric * threshold.percent
)
UNION ALL
SELECT l.org_id, l.budget_id, true FROM last l
"""


class DueCursor(NamedTuple):
    """Where a walk over all accounts stands."""

    org_id: int = 0
    account_id: int = 0


async def find_due(
    connection: Connection | Pool, after: int, *, orgs_max: int, accounts_max: int, grace_us: int
) -> tuple[dict[int, list[int]], int]:
    """Accounts of the next orgs that are due, some of each, and after which org to go on; or 0.

    The rest of an org with more than ``accounts_max`` have their turn in the next round.
    """
    with driver_errors():
        rows = await connection.fetch(DUE, after, orgs_max, accounts_max, grace_us)
    found, last = _split(rows)
    due: dict[int, list[int]] = {}
    for org_id, account_id in found:
        due.setdefault(org_id, []).append(account_id)
    return due, last.org_id


async def find_warned(
    connection: Connection | Pool, after: DueCursor, *, walk_max: int
) -> tuple[list[DueCursor], DueCursor]:
    """Accounts with a budget that has reached a warning; the place is that of the last budget."""
    with driver_errors():
        rows = await connection.fetch(WARNINGS, after.org_id, after.account_id, walk_max)
    return _split(rows)


def _split(rows: Sequence[Sequence[Any]]) -> tuple[list[DueCursor], DueCursor]:
    due = [DueCursor(row[0], row[1]) for row in rows if not row[2]]
    last = next((DueCursor(row[0], row[1]) for row in rows if row[2]), DueCursor())
    return due, last
