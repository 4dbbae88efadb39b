"""Prices that end: to the microsecond, with prices kept or read, and pinned leases untouched."""

from __future__ import annotations

from typing import Any

from gpucredits.core.command import Reserve
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.billing.prices import NewPrice, PriceEnd, add_price, end_price, list_prices
from gpucredits.service.write.acts import Act
from gpucredits.store.billing.prices import PriceFilter
from support.scenes.scene import CREDIT, PRICE, Scene, play

WHO: dict[str, Any] = {"actor": "tester", "request_id": "r"}


async def numbered(stage: Scene) -> int:
    """Number prices after the scene's own; the time."""
    await stage.pool.execute("SELECT setval('price_numbers', 1)")
    now: int = await stage.pool.fetchval("SELECT ledger_now()")
    return now


async def refused(stage: Scene, account: str = "acme") -> Refused:
    """A reserve that must be refused."""
    command = Reserve(account=account, job_id="late", gpu_type="h100", milli_gpus=1_000)
    outcome = await stage.do(command)
    assert isinstance(outcome, Refused)
    return outcome


def test_a_kept_price_holds_until_its_end_and_not_beyond(database: str) -> None:
    """What the board keeps of a price with an end is forgotten at that end; nobody adds a row."""

    async def act(stage: Scene) -> None:
        now = await numbered(stage)
        await stage.fund("acme", "other", credits_each=1_000)
        new = NewPrice(
            gpu_type="h100",
            region="default",
            credits_per_gpu_hour=PRICE // 2,
            effective_from=None,
            effective_to=now + 60_000_000,
        )
        await add_price(stage.pool, Act(org_id=0, key="brief", **WHO), new)
        first = (await stage.reserve(window_ms=120_000)).reservation
        assert first.price == PRICE // 2
        assert (await stage.reserve("other")).reservation.price == PRICE // 2
        await stage.advance(61)
        assert (await stage.reserve("other")).reservation.price == PRICE
        assert (await stage.reserve()).reservation.price == PRICE
        kept = await stage.pool.fetchval(
            "SELECT price FROM reservations WHERE reservation_id = $1", first.reservation_id
        )
        assert kept == PRICE // 2

    play(database, act)


def test_an_ended_price_admits_nobody_and_says_when_it_ended(database: str) -> None:
    """An end set now or for later takes effect at its instant, discounts before list prices."""

    async def act(stage: Scene) -> None:
        now = await numbered(stage)
        await stage.fund("acme", credits_each=1_000)
        org_id = await stage.ledger.org_id("acme")
        assert org_id is not None
        assert (await stage.reserve()).reservation.price == PRICE
        discount = NewPrice(
            gpu_type="h100",
            region="default",
            credits_per_gpu_hour=PRICE // 4,
            effective_from=None,
            account="acme",
        )
        await add_price(stage.pool, Act(org_id=org_id, key="less", **WHO), discount)
        assert (await stage.reserve()).reservation.price == PRICE // 4
        ends_at = now + 90_000_000
        listed = PriceEnd(gpu_type="h100", region="default", effective_to=ends_at)
        ended, _ = await end_price(stage.pool, Act(org_id=0, key="end", **WHO), listed)
        assert ended.effective_to == ends_at
        own = PriceEnd(gpu_type="h100", region="default", effective_to=None, account="acme")
        await end_price(stage.pool, Act(org_id=org_id, key="own", **WHO), own)
        assert (await stage.reserve(window_ms=300_000)).reservation.price == PRICE
        await stage.advance(91)
        said = await refused(stage)
        assert said.reason is Reason.PRICE_UNKNOWN
        assert said.detail["ended_at"] == ends_at
        assert "ended at" in said.message
        rows = await list_prices(stage.pool, PriceFilter(), before=1_000, limit=10)
        assert [state for _, state in rows] == ["ended", "ended"]
        again = NewPrice(
            gpu_type="h100", region="default", credits_per_gpu_hour=CREDIT, effective_from=None
        )
        await add_price(stage.pool, Act(org_id=0, key="again", **WHO), again)
        assert (await stage.reserve()).reservation.price == CREDIT

    play(database, act)
