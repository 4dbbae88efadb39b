"""Books with something of everything, and hands that can damage any row of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg

from gpucredits.core.account import Model
from gpucredits.core.bounds import SECOND_US
from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    AddBoost,
    Adjust,
    Cancel,
    ConfirmTopUp,
    CreateAccount,
    FailTopUp,
    Issue,
    Refund,
    ReverseTopUp,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
    Sweep,
    TopUp,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.grant import Source
from gpucredits.core.outcome import QuotaSaved, Reserved, ToppedUp
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.service.billing.prices import NewPrice, PriceEnd, add_price, end_price
from gpucredits.service.reads.verify_answers import broken_answers
from gpucredits.service.write.acts import Act
from gpucredits.store.verify.powers import wrong_functions
from gpucredits.store.verify.rules import CHECKS, offending_rows
from support.scenes.scene import CREDIT, HOUR_US, PRICE, Scene
from support.waiting import HANGS_S

CONNECT_TIMEOUT_S = HANGS_S
FOUND_MAX = 20


async def open_books(stage: Scene) -> None:
    """Accounts, payments, grants that moved and ended, and leases that ended in every way."""
    await stage.do(CreateAccount(path="acme"))
    await stage.do(CreateAccount(path="acme/p"))
    await stage.do(CreateAccount(path="acme/q", model=Model.POSTPAID, credit_limit=50 * CREDIT))
    await set_prices(stage)
    now = (await stage.balance()).as_of
    await stage.do(Issue(account="acme", amount=4 * CREDIT))
    await stage.do(Issue(account="acme", amount=200 * CREDIT))
    soon = now + 20 * HOUR_US
    terms: dict[str, Any] = {"priority": 7, "source": Source.PROMO, "expires_at": soon}
    await stage.do(Issue(account="acme/p", amount=30 * CREDIT, **terms))
    await stage.do(Issue(account="acme/p", amount=100 * CREDIT))
    await stage.do(Issue(account="acme/p", amount=CREDIT, priority=9, expires_at=now + 9 * CREDIT))
    await stage.do(Issue(account="acme/p", amount=CREDIT, starts_at=now + 500 * HOUR_US))
    await pay(stage)
    await owe_and_repay(stage)
    await stage.do(Transfer(source="acme/p", target="acme/q", amount=3 * CREDIT))
    await run_jobs(stage)
    await change_payers(stage)
    await set_limits(stage, now)
    await stage.reserve(max_amount=5 * CREDIT)  # ends where that does, before its window


async def set_prices(stage: Scene) -> None:
    """A list price that nobody uses and that ends, a discount, and one that is over."""
    org_id = await stage.ledger.org_id("acme")
    assert org_id is not None
    await stage.pool.execute("SELECT setval('price_numbers', 1)")  # the scene has one
    who: dict[str, Any] = {"actor": "tester", "request_id": "r"}
    other = NewPrice(
        gpu_type="b200", region="default", credits_per_gpu_hour=PRICE, effective_from=None
    )
    await add_price(stage.pool, Act(org_id=0, key="list", **who), other)
    discount = NewPrice(
        gpu_type="h100",
        region="default",
        credits_per_gpu_hour=PRICE // 2,
        effective_from=1_000_000,
        account="acme/p",
    )
    await add_price(stage.pool, Act(org_id=org_id, key="less", **who), discount)
    now = await stage.pool.fetchval("SELECT ledger_now()")
    brief = replace(discount, credits_per_gpu_hour=1, effective_to=now + 60 * SECOND_US)
    await add_price(stage.pool, Act(org_id=org_id, key="brief", **who), brief)
    end = PriceEnd(gpu_type="b200", region="default", effective_to=None)
    await end_price(stage.pool, Act(org_id=0, key="end", **who), end)
    await stage.advance(120)


async def pay(stage: Scene) -> None:
    """Payments in every state."""
    for number, status in enumerate(("pending", "confirmed", "failed", "reversed", "confirmed")):
        reference = f"payment-{number}"
        paid = await stage.do(
            TopUp(account="acme", amount=(5 + number) * CREDIT, payment_reference=reference)
        )
        assert isinstance(paid, ToppedUp)
        topup_id = paid.topup.topup_id
        if status in ("confirmed", "reversed"):
            await stage.do(ConfirmTopUp(topup_id=topup_id))
        if status == "failed":
            await stage.do(FailTopUp(topup_id=topup_id))
        if status == "reversed":
            await stage.do(ReverseTopUp(topup_id=topup_id))


async def run_jobs(stage: Scene) -> None:
    """Leases that were settled, canceled, refunded, that lapsed, and that run."""
    shared = await stage.reserve(window_ms=20_000)
    await stage.advance(6)
    await stage.beat(shared, 1, 6_000)
    await settle(stage, shared, 7_000)
    refunded = await stage.reserve("acme/p", window_ms=60_000)
    await stage.advance(40)
    await stage.beat(refunded, 1, 40_000)
    await settle(stage, refunded, 45_000)
    number = refunded.reservation.reservation_id
    await stage.do(Adjust(reservation_id=number, amount=10 * CREDIT))
    await stage.do(Refund(reservation_id=number, amount=CREDIT))
    canceled = await stage.reserve()
    await stage.do(Cancel(reservation_id=canceled.reservation.reservation_id))
    await stage.reserve(window_ms=5_000)
    await stage.advance(90)
    await stage.do(Sweep(account_id=1))
    for account in ("acme", "acme/p"):
        running = await stage.reserve(account, window_ms=3_600_000 // 36)
        await stage.advance(3)
        await stage.beat(running, 1, 3_000)


async def change_payers(stage: Scene) -> None:
    """A lease that its project pays for once its user has no more credits."""
    await stage.do(CreateAccount(path="acme/p/u"))
    lease_ms = 10_000
    rate = PRICE // 2
    await stage.do(Issue(account="acme/p/u", amount=rate * lease_ms // 3_600_000))
    lease = await stage.reserve("acme/p/u", window_ms=lease_ms)
    for seq in (1, 2):
        await stage.advance(4)
        await stage.beat(lease, seq, 4_000 * seq)


async def settle(stage: Scene, lease: Reserved, used_ms: int) -> None:
    """End a lease; its last beat was the first."""
    number = lease.reservation.reservation_id
    await stage.do(Settle(reservation_id=number, seq=2, used_ms=used_ms))


async def owe_and_repay(stage: Scene) -> None:
    """A debt that a grant repays before what was charged for it is given back."""
    lease = await stage.reserve("acme/q", window_ms=5_000)
    await stage.advance(2)
    await settle(stage, lease, 2_000)
    await stage.do(Issue(account="acme/q", amount=CREDIT))
    number = lease.reservation.reservation_id
    await stage.do(Refund(reservation_id=number, amount=3 * CREDIT // 2))


async def set_limits(stage: Scene, now: int) -> None:
    """Limits, and a budget of which something has rolled over."""
    gpus = await stage.do(
        SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=1_000_000)
    )
    assert isinstance(gpus, QuotaSaved)
    await stage.do(SetRateLimit(account="acme", capacity=1_000 * CREDIT, refill_per_hour=CREDIT))
    ends_at = now + HOUR_US
    await stage.do(AddBoost(target_id=gpus.quota.quota_id, amount=1_000, ends_at=ends_at))
    await stage.do(
        SetBudget(
            account="acme/q",
            allowance=CREDIT,
            ends_at=(await stage.balance()).as_of + 2 * CREDIT,
            rollover=Rollover.ALL,
            rollover_us=HOUR_US,
        )
    )
    await stage.do(SetBudget(account="acme", allowance=CREDIT, calendar=Calendar.MONTH, name="m"))
    await stage.do(UpdateAccount(path="acme/q", overdraft_limit=CREDIT))
    await stage.advance(3)
    await stage.do(Sweep(account_id=3))


def found_by(dsn: str, rule: str, damage: str = "") -> list[dict[str, Any]]:
    """What a rule finds of a damage, which is taken back again; it must change something."""

    async def run() -> list[dict[str, Any]]:
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
        try:
            await connection.execute("BEGIN; SET LOCAL session_replication_role = replica")
            for statement in filter(None, damage.split(";")):
                done = await connection.execute(statement)
                assert not done.endswith(" 0"), f"{statement}: {done}"
            return await offending(connection, rule)
        finally:
            await connection.close()

    return asyncio.run(run())


async def offending(connection: Any, rule: str) -> list[dict[str, Any]]:
    """The rows that break a rule."""
    if rule == "answers":
        return await broken_answers(connection, limit=FOUND_MAX)
    if rule == "functions":
        return await wrong_functions(connection)
    check = next(check for check in CHECKS if check.name == rule)
    return await offending_rows(connection, check, limit=FOUND_MAX)
