"""What was spent, added up by job, account, GPU type or day."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpucredits.store.accounts import accounts_under
from gpucredits.store.connection import Connection
from gpucredits.store.where import Where

Grouping = Literal["job", "account", "gpu_type", "day"]
GROUPS: dict[Grouping, str] = {
    "job": "r.job_id",
    "account": "r.account",
    "gpu_type": "r.gpu_type",
    "day": "s.day",
}
DAY = "to_char(instant(e.effective_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
# What is spent takes effect when it is recorded, so the time that is asked for is a run of entries.
SPENT = """
WITH spent AS MATERIALIZED (
    SELECT e.reservation_id, [day] AS day,
        sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END) AS amount
    FROM entries e
    WHERE [where] AND e.type IN (6, 7, 9) AND e.effective_at >= [since] AND e.effective_at < [until]
        AND e.entry_id >= (SELECT entry_at([org], [since]))
        AND e.entry_id < (SELECT entry_at([org], [until]))
    GROUP BY 1, 2
)
SELECT [group] AS name, sum(s.amount)::bigint AS amount,
    count(DISTINCT s.reservation_id) AS reservations
FROM spent s
CROSS JOIN LATERAL (
    SELECT l.job_id, l.account, l.gpu_type FROM reservations l
    WHERE l.org_id = [org] AND l.reservation_id = s.reservation_id OFFSET 0
) AS r
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
    accounts = await accounts_under(connection, org_id, path, tree=True)
    where = Where()
    where.add("e.org_id = {}", org_id)
    if accounts is not None:
        where.add("e.account_id = ANY({}::bigint[])", accounts)
    query = where.into(
        SPENT,
        group=GROUPS[by],
        day=DAY if by == "day" else "''",
        org=where.value(org_id),
        since=where.value(since),
        until=where.value(until),
        limit=where.value(limit),
    )
    return [Spent(*row) for row in await connection.fetch(query, *where.values)]
