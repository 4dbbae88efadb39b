"""What was spent in a time, added up by account, GPU type or day from the sums of days and hours.

Owns: the sums of a time, always whole.
Must not: cut a sum to a page; only its parts are listed page by page.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpucredits.store.billing.day_edges import TimeByDays
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

Grouping = Literal["job", "account", "gpu_type", "day"]
PAIRS_PROBED_MAX = 4_000  # of days and accounts: above so many the days are read whole
NAMES: dict[Grouping, str] = {
    "account": "(SELECT a.path FROM accounts a WHERE a.org_id = [org]"
    " AND a.account_id = s.account_id)",
    "gpu_type": "s.gpu_type",
    "day": "to_char(date '1970-01-01' + s.day, 'YYYY-MM-DD')",
}
KEYS: dict[Grouping, str] = {"account": "account_id", "gpu_type": "gpu_type", "day": "day"}
# Of days that the time cuts in two: what came before an hour, and the entries since it began.
PARTS = """
    SELECT d.day, d.account_id, d.gpu_type, w.sign * coalesce((
        SELECT s.before FROM spend_hours s
        WHERE s.org_id = [org] AND s.payer_id = d.payer_id AND s.account_id = d.account_id
            AND s.gpu_type = d.gpu_type AND s.hour >= w.hour AND s.hour < (d.day + 1) * 24
        ORDER BY s.hour LIMIT 1
    ), d.amount) AS amount -- nothing was spent from the hour on where there is none
    FROM unnest([parts]) AS w(day, sign, hour, first, beyond)
    CROSS JOIN LATERAL (
        SELECT * FROM spend_days d WHERE w.hour >= 0 AND d.org_id = [org] AND d.day = w.day
            AND [payers] OFFSET 0
    ) AS d
    UNION ALL
    SELECT e.day, r.account_id, r.gpu_type, e.amount FROM (
        SELECT w.day, e.reservation_id,
            sum(w.sign * CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END)::bigint AS amount
        FROM unnest([parts]) AS w(day, sign, hour, first, beyond)
        CROSS JOIN LATERAL (
            SELECT e.reservation_id, e.type, e.amount FROM entries e
            WHERE e.org_id = [org] AND e.entry_id >= w.first AND e.entry_id < w.beyond
                AND e.type IN (6, 7, 9) AND [edge_payers] OFFSET 0
        ) AS e
        GROUP BY 1, 2 OFFSET 0
    ) AS e
    CROSS JOIN LATERAL (
        SELECT l.account_id, l.gpu_type FROM reservations l
        WHERE l.org_id = [org] AND l.reservation_id = e.reservation_id OFFSET 0
    ) AS r
"""
# A page of groups, and at last the sum of all groups, whether or not they are on the page. Days are
# added up by group before corrections join them: their rows are many, and the groups are few.
SPENT = f"""
WITH moved AS (
    SELECT d.[key], sum(d.amount) AS amount FROM spend_days d
    WHERE d.org_id = [org] AND [days] AND [payers] GROUP BY d.[key], d.org_id + 0 -- unordered
    UNION ALL
    SELECT c.[key], sum(c.amount) FROM ({PARTS}) AS c GROUP BY 1
), sums AS MATERIALIZED (
    SELECT m.[key], sum(m.amount)::bigint AS amount FROM moved m
    GROUP BY 1 HAVING sum(m.amount) <> 0
)
(SELECT false, [name] AS name, s.amount, 0::bigint AS groups FROM sums s
    ORDER BY s.amount DESC, 2 LIMIT [limit] OFFSET [offset])
UNION ALL
SELECT true, '', coalesce(sum(amount), 0)::bigint, count(*) FROM sums
"""  # noqa: S608  # constant texts only
TOTAL = f"""
SELECT (coalesce((SELECT sum(d.amount) FROM spend_days d
        WHERE d.org_id = [org] AND [days] AND [payers]), 0)
    + coalesce((SELECT sum(c.amount) FROM ({PARTS}) AS c), 0))::bigint
"""  # noqa: S608  # constant texts only


class Spent(NamedTuple):
    """What one job, account, GPU type or day cost; the leases of a job are counted."""

    name: str
    amount: int
    reservations: int | None = None


class SpentPage(NamedTuple):
    """Some groups, and what all groups of the time come to.

    ``following`` is where the next page begins, None after the last. Jobs are not counted.
    """

    groups: list[Spent]
    amount: int
    group_count: int | None
    following: int | None


async def sum_groups(
    connection: Connection,
    org_id: int,
    accounts: list[int] | None,
    time: TimeByDays,
    *,
    by: Grouping,
    limit: int,
    offset: int,
) -> SpentPage:
    """What payers spent in a time by account, GPU type or day, the largest first, and in all."""
    where, places = _moved(org_id, accounts, time)
    query = where.into(
        SPENT,
        **places,
        key=KEYS[by],
        limit=where.value(limit),
        offset=where.value(offset),
    )
    query = query.replace("[name]", NAMES[by].replace("[org]", places["org"]))
    *rows, total = await connection.fetch(query, *where.values)
    groups = [Spent(*row[1:3]) for row in rows]
    shown = offset + len(groups)
    return SpentPage(groups, total[2], total[3], shown if shown < total[3] else None)


async def sum_all(
    connection: Connection, org_id: int, accounts: list[int] | None, time: TimeByDays
) -> int:
    """The total that payers spent in a time."""
    where, places = _moved(org_id, accounts, time)
    total: int = await connection.fetchval(where.into(TOTAL, **places), *where.values)
    return total


def _moved(
    org_id: int, accounts: list[int] | None, time: TimeByDays
) -> tuple[Where, dict[str, str]]:
    """The places of a query over what moved: of some payers, or of the whole org."""
    where = Where()
    org = where.value(org_id)
    days = time.sum_days
    probes = len(days) * len(accounts or ())
    if accounts is not None and probes <= PAIRS_PROBED_MAX:
        in_days = f"d.day = ANY ({where.value(list(days))}::integer[])"
    else:
        in_days = f"d.day >= {where.value(days.start)} AND d.day < {where.value(days.stop)}"
    payers = edge_payers = "true"
    if accounts is not None:
        numbers = where.value(accounts)
        payers = f"d.payer_id = ANY ({numbers}::bigint[])"
        edge_payers = f"e.account_id = ANY ({numbers}::bigint[])"
    kinds = ("integer", "integer", "integer", "bigint", "bigint")
    parts = ", ".join(
        f"{where.value(column)}::{kind}[]"
        for column, kind in zip(time.part_columns, kinds, strict=True)
    )
    return where, {
        "org": org,
        "days": in_days,
        "payers": payers,
        "edge_payers": edge_payers,
        "parts": parts,
    }
