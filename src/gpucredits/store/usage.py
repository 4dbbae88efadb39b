"""What was spent in a time, added up by job, account, GPU type or day, and on which leases.

Owns: the sums of a time, always whole, and which leases a time concerns.
Must not: cut a sum to a page; only its parts are listed page by page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from gpucredits.core.account import lineage
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
IN_TIME = """
    SELECT e.reservation_id, [day] AS day,
        sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END) AS amount
    FROM timed_entries e
    WHERE [where] AND e.type IN (6, 7, 9) AND e.effective_at >= [since] AND e.effective_at < [until]
        AND e.entry_id >= (SELECT entry_at([org], [since]))
        AND e.entry_id < (SELECT entry_at([org], [until]))
    GROUP BY 1, 2
"""
# A page of groups, and at last the sum of all groups, whether or not they are on the page.
SPENT = f"""
WITH spent AS MATERIALIZED ({IN_TIME}), named AS MATERIALIZED (
    SELECT [group] AS name, sum(s.amount)::bigint AS amount,
        count(DISTINCT s.reservation_id) AS reservations
    FROM spent s
    CROSS JOIN LATERAL (
        SELECT l.job_id, l.account, l.gpu_type FROM reservations l
        WHERE l.org_id = [org] AND l.reservation_id = s.reservation_id OFFSET 0
    ) AS r
    GROUP BY 1
)
(SELECT false, name, amount, reservations, 0::bigint AS groups FROM named
    ORDER BY amount DESC, name LIMIT [limit] OFFSET [offset])
UNION ALL
SELECT true, '', coalesce(sum(amount), 0)::bigint,
    (SELECT count(DISTINCT reservation_id) FROM spent), count(*) FROM named
"""  # noqa: S608  # constant texts only
# Leases that ran at some moment of the time, and ended ones that something was paid or given back
# for in it.
CONCERNED = f"""
WITH spent AS MATERIALIZED ({IN_TIME}), ran AS (
    SELECT r.reservation_id FROM (
        SELECT l.reservation_id, l.account_id, l.admitted_at, l.expires_at FROM reservations l
        WHERE l.org_id = [org] AND l.state = 0 AND [live] OFFSET 0 -- by the index of live leases
    ) AS r
    WHERE r.expires_at > [since] AND r.admitted_at < [until] AND [own]
    UNION
    SELECT r.reservation_id FROM (
        SELECT l.reservation_id, l.account_id, l.admitted_at FROM reservations l
        WHERE l.org_id = [org] AND l.state <> 0 AND l.ended_at > [since] OFFSET 0
    ) AS r
    WHERE r.admitted_at < [until] AND [own]
    UNION
    SELECT s.reservation_id FROM spent s
    CROSS JOIN LATERAL (
        SELECT l.account_id FROM reservations l
        WHERE l.org_id = [org] AND l.reservation_id = s.reservation_id OFFSET 0
    ) AS r
    WHERE [own]
)
SELECT reservation_id, coalesce((
    SELECT sum(s.amount) FROM spent s WHERE s.reservation_id = ran.reservation_id), 0)::bigint
FROM ran WHERE reservation_id < [before] ORDER BY reservation_id DESC LIMIT [limit]
"""  # noqa: S608  # constant texts only


class Spent(NamedTuple):
    """What one job, account, GPU type or day cost."""

    name: str
    amount: int
    reservations: int


class SpentPage(NamedTuple):
    """Some groups, the largest first, and what all groups of the time come to."""

    groups: list[Spent]
    amount: int
    reservations: int
    group_count: int


class SpentOn(NamedTuple):
    """What was spent on one lease in a time."""

    reservation_id: int
    amount: int


async def sum_spent(
    connection: Connection,
    org_id: int,
    path: str,
    *,
    since: int,
    until: int,
    by: Grouping,
    limit: int,
    offset: int = 0,
) -> SpentPage:
    """What the subtree of a payer spent in [since, until): some groups of it, and all in all."""
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
        offset=where.value(offset),
    )
    *rows, total = await connection.fetch(query, *where.values)
    return SpentPage([Spent(*row[1:4]) for row in rows], *total[2:5])


async def leases_concerned(
    connection: Connection,
    org_id: int,
    path: str,
    *,
    since: int,
    until: int,
    before: int,
    limit: int,
) -> list[SpentOn]:
    """The leases of a subtree's jobs that [since, until) concerns, the latest first.

    Whoever pays for a lease stands at or above its account, or below ``path``.
    """
    own = await accounts_under(connection, org_id, path, tree=True)
    where = Where()
    where.add("e.org_id = {}", org_id)
    if own is not None:
        above = await _numbers(connection, org_id, lineage(path))
        where.add("e.account_id = ANY({}::bigint[])", [*own, *above])
    live = Where(values=where.values)
    live.under("l.account", path)
    query = where.into(
        CONCERNED,
        live=live.texts[0],
        own="true" if own is None else f"r.account_id = ANY({where.value(own)}::bigint[])",
        day="''",
        org=where.value(org_id),
        since=where.value(since),
        until=where.value(until),
        before=where.value(before),
        limit=where.value(limit),
    )
    return [SpentOn(*row) for row in await connection.fetch(query, *where.values)]


async def _numbers(connection: Connection, org_id: int, paths: Sequence[str]) -> list[int]:
    rows = await connection.fetch(
        "SELECT account_id FROM accounts WHERE org_id = $1 AND path = ANY($2::text[])",
        org_id,
        list(paths),
    )
    return [row["account_id"] for row in rows]
