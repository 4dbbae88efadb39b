"""One org that the ledger cannot answer for keeps nobody else from being billed or resumed."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import CreateAccount
from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.statements import Statements
from gpucredits.service import asking
from support.billing import acme, listed, next_month, open_acme, run, spend
from support.deaf import WAYS, Deaf
from support.scene import CREDIT, Scene, play


@pytest.mark.parametrize("way", WAYS)
def test_months_and_standings_of_others_are_looked_after(
    database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It comes first: the next org's month is closed, and it is paused when it does not pay."""
    monkeypatch.setattr(asking, "DONE_WITHIN_S", 0.5)

    async def act(stage: Scene) -> None:
        first = CreateAccount(path="deaf", model=Model.POSTPAID, credit_limit=CREDIT)
        await stage.do(first, org="deaf")
        await open_acme(stage)
        await spend(stage, 100)
        await next_month(stage)
        org_id = await stage.ledger.org_id("deaf")
        assert org_id is not None
        with monkeypatch.context() as patch:
            Deaf(stage.ledger, org_id, way, patch)
            job = Statements(stage.ledger)
            await job.tick()
            assert [seen.row.account for seen in await listed(stage)] == ["acme"]
            assert await job.tick() is False  # who cannot be billed is no reason to go on at once
            await stage.advance(DUE_DAYS * 86_400 + 60)
            await job.tick()
            assert (await acme(stage)).delinquent
        await run(stage)
        assert {seen.row.account for seen in await listed(stage)} == {"acme", "deaf"}

    play(database, act)
