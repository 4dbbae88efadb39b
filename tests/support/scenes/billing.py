"""An org that pays later, with short words for its months and payments."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

from gpucredits.core.account import Account, Model
from gpucredits.core.command import CreateAccount, ReviewStanding, Settle, TopUp
from gpucredits.core.outcome import AccountSaved, ToppedUp
from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.billing import Statements
from gpucredits.service.billing import statements
from gpucredits.service.billing.statements import Owner, StatementAt, StatementFilter
from support.scenes.scene import CREDIT, Scene

ALL = StatementFilter(before=(2**62, 0))
PAYMENTS = itertools.count(1)


async def open_acme(stage: Scene) -> None:
    """An org that pays later, with a limit of a thousand credits."""
    made = await stage.do(
        CreateAccount(path="acme", model=Model.POSTPAID, credit_limit=1_000 * CREDIT)
    )
    assert isinstance(made, AccountSaved)


async def spend(stage: Scene, amount: int) -> int:
    """Spend so many credits now; the lease that did."""
    lease = await stage.reserve(milli_gpus=1_000 * amount, window_ms=1_000)
    number = lease.reservation.reservation_id
    await stage.advance(1)
    await stage.do(Settle(reservation_id=number, used_ms=1_000))
    return number


async def next_month(stage: Scene) -> None:
    """Let the clock go to the next month, past the moment of grace."""
    now = (await stage.balance()).as_of
    moment = datetime.fromtimestamp(now // 1_000_000, UTC)
    first = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=UTC)
    await stage.advance(first.timestamp() - now / 1_000_000 + 120)


async def run(stage: Scene) -> None:
    """Let the job do all there is to do."""
    job = Statements(stage.ledger)
    while await job.tick():
        pass


async def billed(stage: Scene, amount: int) -> int:
    """An org that pays later, with a closed month in which it spent so much; the lease that did."""
    await open_acme(stage)
    lease = await spend(stage, amount)
    await next_month(stage)
    await run(stage)
    return lease


async def past_due(stage: Scene) -> None:
    """Let the time pass in which a statement that was just closed is to be paid."""
    await stage.advance(DUE_DAYS * 86_400 + 1)


async def listed(stage: Scene) -> list[StatementAt]:
    """Statements, the oldest first."""
    return (await statements.list_statements(stage.pool, ALL))[::-1]


async def acme(stage: Scene) -> Account:
    """The account as it stands."""
    account = await stage.reads.account("acme")
    assert account is not None
    return account


async def pay(stage: Scene, amount: int) -> ToppedUp:
    """A payment that has arrived."""
    reference = f"p-{next(PAYMENTS)}"
    paid = await stage.do(
        TopUp(account="acme", amount=amount * CREDIT, payment_reference=reference, confirmed=True)
    )
    assert isinstance(paid, ToppedUp)
    return paid


async def review(stage: Scene) -> ReviewStanding:
    """The command that looks at the account's standing."""
    org_id = await stage.ledger.org_id("acme")
    assert org_id is not None
    account = await acme(stage)
    return await statements.review_of(stage.pool, Owner(org_id, account.account_id, account.path))


def lines(seen: StatementAt) -> tuple[int, ...]:
    """Opening, charges, payments, other credits, closing and what it asks for, in credits."""
    row = seen.row
    numbers = (row.opening, row.charges, row.payments, row.credits, row.closing, row.amount)
    return tuple(number // CREDIT for number in numbers)
