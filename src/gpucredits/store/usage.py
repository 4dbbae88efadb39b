"""What was spent, added up by job, account, GPU type or day."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpucredits.store.connection import Connection
from gpucredits.store.where import Where

Grouping = Literal["job", "account", "gpu_type", "day"]
GROUPS: dict[Grouping, str] = {
    "job": "r.job_id",
    "account": "r.account",
    "gpu_type": "r.gpu_type",
    "day": "to_char(instant(e.effective_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
}
SPENT = """
SELECT [group] AS name,
    sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END)::bigint AS amount,
    count(DISTINCT e.reservation_id) AS reservations
FROM accounts a
JOIN entries e ON e.org_id = a.org_id AND e.account_id = a.account_id AND e.type IN (6, 7, 9)
JOIN reservations r ON r.org_id = e.org_id AND r.reservation_id = e.reservation_id
WHERE [where] AND e.effective_at >= [since] AND e.effective_at < [until]
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT [limit]
"""


class Spent(NamedTuple):
    """What one job, account, GPU type or day cost."""

    name: str
    amount: int
    reservations: int


async def sum_spent(
    connection: Connection,
    org_id: int,
    path: str,
    *,
    since: int,
    until: int,
    by: Grouping,
    limit: int,
) -> list[Spent]:
    """What the subtree of a payer spent in [since, until), the largest first."""
    where = Where()
    where.add("a.org_id = {}", org_id)
    where.under("a.path", path)
    query = where.into(
        SPENT,
        group=GROUPS[by],
        since=where.value(since),
        until=where.value(until),
        limit=where.value(limit),
    )
    return [Spent(*row) for row in await connection.fetch(query, *where.values)]
