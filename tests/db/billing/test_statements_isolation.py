"""One org that the ledger cannot answer for keeps nobody else from being billed or resumed."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import CreateAccount, Settle
from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs import billing as jobs
from gpucredits.jobs.billing import Statements
from support.scenes.billing import acme, listed, next_month, open_acme, run, spend
from support.scenes.scene import CREDIT, Scene, play
from support.servers.deaf import WAYS, Deaf


async def month_beside_deaf(stage: Scene) -> int:
    """Acme owes for a month that is over; the number of the org that will not answer."""
    await open_acme(stage)
    await spend(stage, 100)
    await next_month(stage)
    org_id = await stage.ledger.org_id("deaf")
    assert org_id is not None
    return org_id


@pytest.mark.parametrize("way", WAYS)
def test_months_and_standings_of_others_are_looked_after(
    database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It comes first: the next org's month is closed, and it is paused when it does not pay."""
    monkeypatch.setattr(jobs, "MONTHS_EVERY_S", 0.0)

    async def act(stage: Scene) -> None:
        first = CreateAccount(path="deaf", model=Model.POSTPAID, credit_limit=CREDIT)
        await stage.do(first, org="deaf")
        org_id = await month_beside_deaf(stage)
        with monkeypatch.context() as patch:
            Deaf(stage.ledger, org_id, way, patch)
            job = Statements(stage.ledger)
            await job.tick()
            assert [seen.row.account for seen in await listed(stage)] == ["acme"]
            assert await job.tick() is False  # who cannot be billed is no reason to go on at once
            await stage.advance(DUE_DAYS * 86_400 + 60)
            await job.tick()
            assert (await acme(stage)).delinquent
        await job.tick()  # as a minute later
        assert {seen.row.account for seen in await listed(stage)} == {"acme", "deaf"}

    play(database, act)


def test_an_org_with_many_accounts_and_no_answer_delays_nobody_for_long(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has more accounts than a tick looks after: the next ticks go on behind them."""

    async def act(stage: Scene) -> None:
        for path in ("deaf", *(f"deaf/{number}" for number in range(5))):
            opened = CreateAccount(path=path, model=Model.POSTPAID, credit_limit=CREDIT)
            await stage.do(opened, org="deaf")
            lease = await stage.reserve(path, window_ms=1_000)
            number = lease.reservation.reservation_id
            await stage.do(Settle(reservation_id=number, used_ms=1_000), org="deaf")
        org_id = await month_beside_deaf(stage)
        with monkeypatch.context() as patch:
            Deaf(stage.ledger, org_id, "busy", patch)
            job = Statements(stage.ledger, accounts_max=2)
            for _ in range(6):
                await job.tick()
            assert [seen.row.account for seen in await listed(stage)] == ["acme"]
        await run(stage)
        await stage.advance(DUE_DAYS * 86_400 + 60)
        with monkeypatch.context() as patch:
            Deaf(stage.ledger, org_id, "busy", patch)
            for _ in range(6):
                await job.tick()
            assert (await acme(stage)).delinquent
        await run(stage)

    play(database, act)
