"""The history of budgets: their periods, each with what became of its allowance.

Owns: joining what is stored with what the clock has made true since.
Must not: write, or speak SQL (store does).
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core import bounds
from gpucredits.core.account import org_of
from gpucredits.core.book import Book
from gpucredits.core.budget import BudgetPeriod
from gpucredits.core.entry import EntryType
from gpucredits.core.rules.upkeep.roll import roll
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import snapshot
from gpucredits.store.ledger.orgs import find_org
from gpucredits.store.limits.budgets import PeriodRow, list_periods


@dataclass(frozen=True, slots=True)
class PeriodStanding:
    """A period of a budget: ``used`` is neither ``left``, nor rolled over, nor expired.

    ``rolled_in`` came from the period before as a grant of its own, and is in no other number.
    """

    period: BudgetPeriod
    used: int
    left: int
    rolled_in: int


async def read_periods(
    pool: Pool, path: str, name: str, *, before: int = bounds.NEVER_US, limit: int = 100
) -> list[PeriodStanding] | None:
    """Periods of an account's budget that began before an instant, the latest first.

    None when there is no such account or budget.
    """
    async with snapshot(pool) as connection:
        org_id = await find_org(connection, org_of(path))
        if org_id is None:
            return None
        needs = Needs(orgs={org_id}, paths={(org_id, path)})
        page = (await load(connection, needs))[org_id]
        book = page.book
        account = book.paths.get(path)
        if account is None:
            return None
        budgets = book.budgets.get(account.account_id, ())
        budget = next((known for known in budgets if known.name == name), None)
        if budget is None:
            return None
        stored = await list_periods(
            connection, org_id, budget.budget_id, before=before, limit=limit + 1
        )
    roll(book, account, page.now)
    return standings(book, budget.budget_id, stored, before=before)[:limit]


def standings(
    book: Book, budget_id: int, stored: list[PeriodRow], *, before: int
) -> list[PeriodStanding]:
    """Stored periods as they are by now, and those that began since, the latest first."""
    rows = {row.period.starts_at: row for row in stored}
    for period in book.periods.get(budget_id, ()):
        known = rows.get(period.starts_at)
        if known is not None:
            rows[period.starts_at] = PeriodRow(period, known.remaining, known.expired)
        elif before > period.starts_at > max(rows, default=0):
            rows[period.starts_at] = PeriodRow(period, 0, 0)
    expired: dict[int, int] = {}
    for entry in book.entries:
        if entry.type is EntryType.EXPIRE:
            expired[entry.grant_id] = expired.get(entry.grant_id, 0) + entry.amount
    found: list[PeriodStanding] = []
    rolled_in = 0
    for _, row in sorted(rows.items()):
        period = row.period
        grant = book.lots.get(period.grant_id)
        left = row.remaining if grant is None else grant.remaining
        lost = row.expired + expired.get(period.grant_id, 0)
        used = period.allowance - period.rolled - left - lost
        found.append(PeriodStanding(period, used, left, rolled_in))
        rolled_in = period.rolled
    return found[::-1]
