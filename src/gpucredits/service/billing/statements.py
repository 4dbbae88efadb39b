"""Statements: a month closed into its lines, paid, and looked after.

Owns: the order of the steps. A month is closed once, whoever closes it; whether it is paid is
read off the ledger; pausing and resuming is the ledger's decision, on its own rows.
Must not: speak SQL (store does), or judge (core does).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gpucredits.core import ids, statement
from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import ReviewStanding, TopUp
from gpucredits.core.money import format_credits
from gpucredits.core.period import EPOCH, MICROSECOND
from gpucredits.core.statement import (
    DUE_DAYS,
    SHORTEST_US,
    Bill,
    Totals,
    figures,
    month_after,
    month_from,
    outstanding,
)
from gpucredits.service.dispatch.admission import Asking
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.access import audit
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.billing import statements
from gpucredits.store.billing.statements import Owner, StatementFilter, StatementRow, Step
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session, snapshot
from gpucredits.store.ledger import outbox
from gpucredits.store.ledger.due import DueCursor
from gpucredits.wire.scalars import format_instant

__all__ = ["Owner", "StatementAt", "StatementFilter", "StatementRow", "Step"]

ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class StatementAt:
    """A statement as of an instant, with everything that had come in by then."""

    row: StatementRow
    received: int
    at: int

    @property
    def outstanding(self) -> int:
        """The part of it that is not paid."""
        return outstanding(self.row.bill, self.received)

    @property
    def state(self) -> str:
        """Paid, overdue, or open."""
        if not self.outstanding:
            return "paid"
        return "overdue" if self.row.due_at <= self.at else "open"


async def list_statements(pool: Pool, which: StatementFilter) -> list[StatementAt]:
    """Statements, the latest first."""
    async with session(pool) as db:
        now = await read_clock(db)
        return [
            StatementAt(row, received, now) for row, received in await statements.page(db, which)
        ]


async def bill_due(pool: Pool, org_id: int, path: str, at: int) -> Bill | None:
    """The latest bill of an account that was due at an instant."""
    async with session(pool) as db:
        return await statements.latest_due(db, org_id, path, at)


async def payment(
    pool: Pool, row: StatementRow, amount: int, reference: str
) -> list[TopUp | ReviewStanding]:
    """The commands that pay a statement: the payment, and the look at the account after it."""
    number = ids.format_id(ids.STATEMENT, row.org_id, row.statement_id)
    review = await review_of(pool, Owner(row.org_id, row.account_id, row.account))
    paid = TopUp(
        account=row.account,
        amount=amount,
        payment_reference=reference,
        confirmed=True,
        metadata={"statement": number},
        bill=row.bill,
        refunded=review.refunded,
    )
    return [paid, review]


async def review_of(pool: Pool, owner: Owner) -> ReviewStanding:
    """The command that looks at an account's standing."""
    async with session(pool) as db:
        bills, refunded = await statements.bills_of(db, owner)
    return ReviewStanding(path=owner.path, bills=bills, refunded=refunded)


async def months_over(pool: Pool, zone: str = ZONE) -> int:
    """The end of the last month that may be closed now."""
    return statement.months_over(await read_clock(pool), zone)


async def close_months(
    ledger: Ledger, step: Step, *, until: int, zone: str = ZONE, due_days: int = DUE_DAYS
) -> tuple[int, DueCursor]:
    """Close the next open month, up to ``until``, of some accounts; of how many, where to go on.

    An account whose ledger does not answer is left for later, and delays no other bill.
    """
    async with session(ledger.pool) as db:
        owners, last = await statements.open_months(
            db, step, until=until, reached=until - SHORTEST_US
        )
    asking, closed = Asking(), 0
    for owner in owners:
        entries = await asking.done(
            owner.org_id,
            f"the month of {owner.path}",
            partial(ledger.sweep, owner.org_id, [owner.account_id]),
        )
        if entries is not None:
            await close_month(ledger.pool, owner, until=until, zone=zone, due_days=due_days)
            closed += 1
    return closed, last


async def close_month(
    pool: Pool, owner: Owner, *, until: int, zone: str = ZONE, due_days: int = DUE_DAYS
) -> int | None:
    """Close the month after an account's last statement; its number, unless another did."""
    async with snapshot(pool) as db:
        last = await statements.latest(db, owner)
        if last is None:
            starts_at, ends_at = month_after(owner.created_at, zone)
        else:
            starts_at, ends_at = month_from(last.ends_at, zone)
        if ends_at > until:
            return None
        before = Totals() if last is None else last.totals
        after = await statements.totals_before(db, owner, ends_at)
        now = await read_clock(db)
    lines = figures(before, after)
    due_at = now + due_days * DAY_US
    middle = EPOCH + (starts_at + ends_at) // 2 * MICROSECOND
    async with session(pool) as db, db.transaction():
        number = await statements.insert(
            db,
            owner,
            middle.strftime("%Y-%m"),
            starts_at=starts_at,
            ends_at=ends_at,
            closed_at=now,
            due_at=due_at,
            lines=lines,
            after=after,
        )
        if number is None:
            return None
        shown = {
            "statement_id": ids.format_id(ids.STATEMENT, owner.org_id, number),
            "period": middle.strftime("%Y-%m"),
            "closing": format_credits(lines.closing),
            "amount": format_credits(lines.amount),
            "due_at": format_instant(due_at),
        }
        note = AuditNote(SYSTEM, "statement.close", owner.path, "", new=shown)
        await audit.insert(db, owner.org_id, [note])
        told = {"account": owner.path, **shown}
        await outbox.announce(db, owner.org_id, "statement.closed", number, told)
        return number


async def review_standings(ledger: Ledger, step: Step) -> DueCursor:
    """Pause who is overdue and resume who has paid, among some accounts; where to go on.

    Whose ledger does not answer is left for later.
    """
    async with session(ledger.pool) as db:
        owners, last = await statements.misjudged(db, step)
    asking = Asking()
    for owner in owners:
        request = Request(await review_of(ledger.pool, owner), actor=SYSTEM)
        await asking.done(
            owner.org_id,
            f"the standing of {owner.path}",
            partial(ledger.submit, owner.org_id, request),
        )
    return last
