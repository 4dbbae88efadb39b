"""Statements at rest, and what they are made of.

Owns: the rows of statements, which are only ever added, and sums of payments and refunds.
Must not: decide what is owed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from gpucredits.core.statement import BILLS_MAX, Bill, StatementLines, Totals
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgFilter, OrgRows
from gpucredits.store.ledger.due import DueCursor
from gpucredits.store.ledger.history import sums_at

COLUMNS = """s.org_id, s.statement_id, s.account_id, s.account, s.period, s.starts_at, s.ends_at,
    s.closed_at, s.due_at, s.opening, s.charges, s.payments, s.credits, s.closing, s.amount,
    s.charged_through, s.paid_through"""
REFUNDED = """coalesce((SELECT sum(e.amount) FROM entries e WHERE e.org_id = a.org_id
    AND e.account_id = a.account_id AND e.type = 7), 0)::bigint"""
# Balances as stored: what the clock has made due since is written down within a moment.
LIST = f"""
SELECT {COLUMNS}, (a.remaining - a.debt + a.spent + {REFUNDED})::bigint AS received
FROM statements s JOIN accounts a ON a.org_id = s.org_id AND a.account_id = s.account_id
WHERE [where] [order]
"""  # noqa: S608  # constant texts only
LATEST = f"""
SELECT {COLUMNS} FROM statements s WHERE s.org_id = $1 AND s.account_id = $2
ORDER BY s.ends_at DESC LIMIT 1
"""  # noqa: S608  # constant texts only
# The next accounts, at any scope, that pay later; the last of them, if there may be more behind it.
WALKED = """
WITH walked AS MATERIALIZED (
    SELECT org_id, account_id, path, created_at, model, delinquent, remaining, debt, spent
    FROM accounts
    WHERE (model = 1 OR delinquent) AND (org_id, account_id) > ($1::bigint, $2::bigint)
    ORDER BY org_id, account_id LIMIT $3
)
(SELECT org_id, account_id, path, created_at, true FROM walked
ORDER BY org_id, account_id OFFSET $3 - 1)
UNION ALL
"""
# Those of them that have no statement that reaches far enough.
OPEN_MONTHS = f"""{WALKED}
SELECT a.org_id, a.account_id, a.path, a.created_at, false FROM walked a
WHERE a.model = 1 AND a.created_at < $4
    AND NOT EXISTS (SELECT 1 FROM statements s WHERE s.org_id = a.org_id
        AND s.account_id = a.account_id AND s.ends_at >= $5)
"""  # noqa: S608  # constant texts only
# Where what came in and what is overdue say other than the account's mark. The latest bill that is
# due tells of all before it. The ledger decides; this only finds who is to be looked at.
MISJUDGED = f"""{WALKED}
SELECT a.org_id, a.account_id, a.path, a.created_at, false FROM walked a
LEFT JOIN LATERAL (
    SELECT s.charged_through FROM statements s WHERE s.org_id = a.org_id
        AND s.account_id = a.account_id AND s.due_at <= (SELECT ledger_now()) AND s.amount > 0
    ORDER BY s.due_at DESC LIMIT 1
) AS due ON true
WHERE a.delinquent <> coalesce(
    due.charged_through > a.remaining - a.debt + a.spent + {REFUNDED}, false)
"""  # noqa: S608  # constant texts only
BILLS = """
SELECT statement_id, amount, charged_through, due_at FROM statements
WHERE org_id = $1 AND account_id = $2 AND amount > 0 ORDER BY ends_at DESC LIMIT $3
"""
# Whoever is paused has not paid all of the latest bill that is due: the oldest are paid first.
DUE = """
SELECT s.statement_id, s.amount, s.charged_through, s.due_at
FROM accounts a JOIN statements s ON s.org_id = a.org_id AND s.account_id = a.account_id
WHERE a.org_id = $1 AND a.path = $2 AND s.due_at <= $3 AND s.amount > 0
ORDER BY s.due_at DESC LIMIT 1
"""
PAID = """
SELECT coalesce(sum(amount) FILTER (WHERE type = 2), 0)::bigint
        - coalesce(sum(amount) FILTER (WHERE type = 13), 0)::bigint AS payments,
    coalesce(sum(amount) FILTER (WHERE type = 7), 0)::bigint AS refunds
FROM timed_entries
WHERE org_id = $1 AND account_id = $2 AND type IN (2, 7, 13) AND effective_at < $3
"""


class Owner(NamedTuple):
    """An account that pays later."""

    org_id: int
    account_id: int
    path: str
    created_at: int = 0


class Step(NamedTuple):
    """A step of a walk over them: from where, over how many, and how many to find at most."""

    after: DueCursor
    walk_max: int
    found_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRow:
    """A stored statement."""

    org_id: int
    statement_id: int
    account_id: int
    account: str
    period: str
    starts_at: int
    ends_at: int
    closed_at: int
    due_at: int
    opening: int
    charges: int
    payments: int
    credits: int
    closing: int
    amount: int
    charged_through: int
    paid_through: int

    @property
    def bill(self) -> Bill:
        """The bill that it stands for."""
        return Bill(self.statement_id, self.amount, self.charged_through, self.due_at)

    @property
    def totals(self) -> Totals:
        """The account's totals at its end."""
        return Totals(-self.closing, self.charged_through, self.paid_through)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFilter(OrgFilter):
    """Which statements to list."""

    number: int | None = None


STATEMENTS = OrgRows("statements", StatementRow, "s.statement_id", query=LIST)


async def page(db: Connection, which: StatementFilter) -> list[tuple[StatementRow, int]]:
    """Statements, each with everything that has come in to its account until now."""
    where = STATEMENTS.where(which, statement_id=which.number)
    rows = await STATEMENTS.fetch(db, where, limit=which.limit)
    return [(STATEMENTS.read(row), row["received"]) for row in rows]


async def latest(db: Connection, owner: Owner) -> StatementRow | None:
    """The statement of an account that reaches furthest."""
    row = await db.fetchrow(LATEST, owner.org_id, owner.account_id)
    return None if row is None else STATEMENTS.read(row)


async def open_months(
    db: Connection, step: Step, *, until: int, reached: int
) -> tuple[list[Owner], DueCursor]:
    """Accounts opened before ``until`` whose statements do not reach up to ``reached``.

    Also where to go on; at the end, from the start.
    """
    return _found(await db.fetch(OPEN_MONTHS, *step.after, step.walk_max, until, reached), step)


async def misjudged(db: Connection, step: Step) -> tuple[list[Owner], DueCursor]:
    """Accounts that seem wrongly paused, or wrongly not paused; where to go on."""
    return _found(await db.fetch(MISJUDGED, *step.after, step.walk_max), step)


def _found(rows: Sequence[Sequence[Any]], step: Step) -> tuple[list[Owner], DueCursor]:
    found = sorted(Owner(*row[:4]) for row in rows if not row[4])
    if len(found) > step.found_max:
        found = found[: step.found_max]
        return found, DueCursor(found[-1].org_id, found[-1].account_id)
    return found, next((DueCursor(row[0], row[1]) for row in rows if row[4]), DueCursor())


async def bills_of(db: Connection, owner: Owner) -> tuple[tuple[Bill, ...], int]:
    """The latest bills of an account, and all that was ever refunded to it."""
    rows = await db.fetch(BILLS, owner.org_id, owner.account_id, BILLS_MAX)
    sums = await db.fetchrow(PAID, owner.org_id, owner.account_id, 2**62)
    assert sums is not None  # sums have a row
    return tuple(Bill(*row) for row in reversed(rows)), sums["refunds"]


async def latest_due(db: Connection, org_id: int, path: str, at: int) -> Bill | None:
    """The latest bill of an account that was due at an instant."""
    row = await db.fetchrow(DUE, org_id, path, at)
    return None if row is None else Bill(*row)


async def totals_before(db: Connection, owner: Owner, at: int) -> Totals:
    """An account's sums by everything that took effect before an instant."""
    buckets = await sums_at(db, owner.org_id, [owner.account_id], at=at - 1)
    sums = await db.fetchrow(PAID, owner.org_id, owner.account_id, at)
    assert sums is not None  # sums have a row
    return Totals(
        buckets.available + buckets.reserved, buckets.spent + sums["refunds"], sums["payments"]
    )


async def insert(  # noqa: PLR0913  # what a statement is about, and its lines
    db: Connection,
    owner: Owner,
    period: str,
    *,
    starts_at: int,
    ends_at: int,
    closed_at: int,
    due_at: int,
    lines: StatementLines,
    after: Totals,
) -> int | None:
    """Add a statement; its number, or None when another has added it."""
    values = {
        "org_id": owner.org_id,
        "account_id": owner.account_id,
        "account": owner.path,
        "period": period,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "closed_at": closed_at,
        "due_at": due_at,
        **asdict(lines),
        "charged_through": after.charged,
        "paid_through": after.payments,
    }
    once = "org_id, account_id, period"
    return await STATEMENTS.add(db, values, "statements", clock="", once=once)
