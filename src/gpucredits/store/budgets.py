"""Reading the periods of a budget, those that are over as well."""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.budget import BudgetPeriod
from gpucredits.store.book_gates import period_of
from gpucredits.store.connection import Connection

PERIODS = """
SELECT p.budget_id, p.starts_at, p.ends_at, p.allowance, p.grant_id, p.rolled, p.rolled_grant_id,
    p.warned_percent, p.rollover, p.rollover_cap, p.rollover_us, p.calendar, p.zone, g.remaining, (
        SELECT coalesce(sum(CASE e.type WHEN 8 THEN e.amount ELSE -e.amount END), 0)::bigint
        FROM entries e
        WHERE e.org_id = p.org_id AND e.grant_id = p.grant_id AND e.type IN (8, 14)
    ) AS expired
FROM budget_periods p
JOIN grants g ON g.org_id = p.org_id AND g.grant_id = p.grant_id
WHERE p.org_id = $1 AND p.budget_id = $2 AND p.starts_at < $3
ORDER BY p.starts_at DESC LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class PeriodRow:
    """A period, with what is left of its allowance and what of it has expired unused."""

    period: BudgetPeriod
    remaining: int
    expired: int


async def list_periods(
    connection: Connection, org_id: int, budget_id: int, *, before: int, limit: int
) -> list[PeriodRow]:
    """The periods of a budget that began before an instant, the latest first, as stored."""
    rows = await connection.fetch(PERIODS, org_id, budget_id, before, limit)
    return [PeriodRow(period_of(row), row["remaining"], row["expired"]) for row in rows]
