"""Budgets in the stored ledger: periods that were missed, warnings, and what became of each."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from gpucredits.core.budget import Rollover
from gpucredits.core.command import SetBudget, Settle
from gpucredits.core.period import Calendar
from gpucredits.jobs.sweeper import Sweeper
from gpucredits.service.billing.budgets import read_periods
from support.scenes.gated import ALICE, set_up, until_midnight
from support.scenes.scene import CREDIT, Scene, play, scene


def test_sweepers_issue_every_period_that_was_missed(database: str) -> None:
    """After three days without a server two sweepers write down each day's allowance once."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        budget = SetBudget(account=ALICE, allowance=50 * CREDIT, calendar=Calendar.DAY)
        await stage.do(budget)
        await until_midnight(stage, before_s=-2 * 86_400 - 5)
        known = await read_periods(stage.pool, ALICE, "default")
        async with scene(database) as other:
            sweepers = [Sweeper(server.ledger) for server in (stage, other)]
            await asyncio.gather(*(sweeper.tick() for sweeper in sweepers))
        rows = await stage.pool.fetch(
            "SELECT p.starts_at, p.ends_at, g.remaining FROM budget_periods p JOIN grants g"
            " USING (org_id, grant_id) ORDER BY p.starts_at"
        )
        assert [row["remaining"] for row in rows] == [0, 0, 0, 50 * CREDIT]
        assert all(a["ends_at"] == b["starts_at"] for a, b in pairwise(rows))
        issued = "SELECT count(*) FROM entries WHERE type = 1 AND amount = $1"
        assert await stage.pool.fetchval(issued, 50 * CREDIT) == 4
        assert known is not None
        assert [(each.used, each.left) for each in known] == [(0, 50 * CREDIT), *[(0, 0)] * 3]
        assert await read_periods(stage.pool, ALICE, "default") == known

    play(database, act)


def test_a_start_is_corrected_until_it_has_come_and_not_after(database: str) -> None:
    """A budget of years ahead begins now once it says so; said again, nothing more is issued."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        now = await stage.pool.fetchval("SELECT ledger_now()")
        issued = "SELECT count(*) FROM entries WHERE type = 1 AND amount = $1"
        for starts_at, times in ((2 * now, 0), (now, 1), (now, 1), (2 * now, 1)):
            budget = SetBudget(
                account=ALICE, allowance=50 * CREDIT, calendar=Calendar.MONTH, starts_at=starts_at
            )
            await stage.do(budget)
            assert await stage.pool.fetchval(issued, 50 * CREDIT) == times

    play(database, act)


def test_a_warning_is_announced_once(database: str) -> None:
    """A sweeper reports that a budget has passed a threshold, though its account is not due."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        budget = SetBudget(
            account=ALICE, allowance=20 * CREDIT, calendar=Calendar.MONTH, warn_percent=(50, 90)
        )
        await stage.do(budget)
        lease = await stage.reserve(ALICE, window_ms=10_000)
        await stage.advance(9)
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number, used_ms=9_000))
        announced = "SELECT payload ->> 'percent' FROM outbox WHERE type = 'budget.warned'"
        sweeper = Sweeper(stage.ledger)
        await sweeper.tick()
        assert await stage.pool.fetch(announced) == []
        lease = await stage.reserve(ALICE, window_ms=2_000)
        await stage.advance(1)
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number, used_ms=1_000))
        for _ in range(4):
            await sweeper.tick()
        assert [row[0] for row in await stage.pool.fetch(announced)] == ["50"]

    play(database, act)


def test_budgets_are_looked_at_once_in_a_round_of_all_orgs(database: str) -> None:
    """However many ticks a round takes, each begins with the next few budgets."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await stage.fund("beta", "gamma", credits_each=0)
        for name in ("a", "b"):
            await stage.do(SetBudget(account=ALICE, name=name, allowance=1, calendar=Calendar.DAY))
        sweeper = Sweeper(stage.ledger, orgs_max=1, budgets_max=1)
        places = []
        for _ in range(3):  # rounds
            while await sweeper.tick():
                places.append(sweeper.budget_place)
        assert len(places) == 3 * 3
        assert [len(set(places[first : first + 3])) for first in (0, 3, 6)] == [1, 1, 1]
        assert len(set(places)) == 3  # at one, at the other, at the end

    play(database, act)


def test_periods_tell_what_became_of_their_allowance(database: str) -> None:
    """Used, left, rolled on and expired add up, before anybody has written the new day down."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        budget = SetBudget(
            account=ALICE,
            allowance=20 * CREDIT,
            calendar=Calendar.DAY,
            rollover=Rollover.CAPPED,
            rollover_cap=5 * CREDIT,
        )
        await stage.do(budget)
        lease = await stage.reserve(ALICE)
        await stage.advance(9)
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number, used_ms=9_000))
        await until_midnight(stage, before_s=-1)
        known = await read_periods(stage.pool, ALICE, "default")
        assert known is not None
        today, yesterday = known
        assert (today.used, today.left, today.rolled_in) == (0, 20 * CREDIT, 5 * CREDIT)
        assert (yesterday.used, yesterday.left) == (9 * CREDIT, 0)
        assert yesterday.period.rolled == 5 * CREDIT
        await Sweeper(stage.ledger).tick()
        assert await read_periods(stage.pool, ALICE, "default") == known
        assert await read_periods(stage.pool, ALICE, "other") is None

    play(database, act)
