"""Whose months are closed, by which calendar, and how long there is to pay."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import CreateAccount, Reserve, Settle, TopUp
from gpucredits.core.outcome import Reserved
from gpucredits.core.reasons import Refused
from gpucredits.jobs.billing import Statements
from support.scenes.billing import listed, next_month, open_acme, past_due, run, spend
from support.scenes.gated import until_noon
from support.scenes.scene import CREDIT, Scene, play


def test_every_account_that_pays_later_is_billed_for_what_it_paid(database: str) -> None:
    """A project with a credit limit of its own has its own statement, and is paused by itself."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        await until_noon(stage)
        for path in ("acme/lab", "acme/lab/ann", "acme/own"):
            own = CreateAccount(path=path, model=Model.POSTPAID, credit_limit=500 * CREDIT)
            await stage.do(CreateAccount(path=path) if path == "acme/own" else own)
        for account, amount in (("acme/lab", 40), ("acme/lab/ann", 7), ("acme/own", 2)):
            lease = await stage.reserve(account, milli_gpus=1_000 * amount, window_ms=1_000)
            number = lease.reservation.reservation_id
            await stage.advance(1)
            await stage.do(Settle(reservation_id=number, used_ms=1_000))
        await next_month(stage)
        await run(stage)
        billed = {seen.row.account: seen.row.amount // CREDIT for seen in await listed(stage)}
        assert billed == {"acme": 2, "acme/lab": 40, "acme/lab/ann": 7}
        paid = TopUp(account="acme", amount=2 * CREDIT, payment_reference="a", confirmed=True)
        await stage.do(paid)
        await past_due(stage)
        await run(stage)
        marks = "SELECT path FROM accounts WHERE delinquent ORDER BY path"
        found = [row["path"] for row in await stage.pool.fetch(marks)]
        assert found == ["acme/lab", "acme/lab/ann"]
        asked = Reserve(account="acme/lab", job_id="j", gpu_type="h100", milli_gpus=1_000)
        assert isinstance(await stage.do(asked), Refused)
        other = Reserve(account="acme/own", job_id="j", gpu_type="h100", milli_gpus=1_000)
        assert isinstance(await stage.do(other), Reserved)

    play(database, act)


def test_the_time_to_pay_can_be_set(database: str) -> None:
    """A server that gives three days has statements that are due after three days."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        await spend(stage, 10)
        await next_month(stage)
        await Statements(stage.ledger, due_days=3).tick()
        [seen] = await listed(stage)
        assert seen.row.due_at - seen.row.closed_at == 3 * 86_400_000_000

    play(database, act)


@pytest.mark.parametrize("zones", [("UTC", "America/New_York"), ("America/New_York", "UTC")])
def test_months_follow_each_other_when_their_zone_is_changed(
    database: str, zones: tuple[str, str]
) -> None:
    """The month after the change is some hours longer or shorter; none is lost or told twice."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        before, after = zones
        for zone in (before, after, after):
            await next_month(stage)
            await stage.advance(6 * 3_600)
            job = Statements(stage.ledger, zone=zone)
            ticks = [await job.tick() for _ in range(3)]
            assert ticks == [True, False, False]  # nothing is looked at again and again
        rows = [seen.row for seen in await listed(stage)]
        assert len({row.period for row in rows}) == len(rows) == 3
        for earlier, later in pairwise(rows):
            assert earlier.ends_at == later.starts_at
            assert 27 * 86_400 < (later.ends_at - later.starts_at) // 1_000_000 < 32 * 86_400

    play(database, act)
