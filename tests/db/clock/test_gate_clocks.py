"""Stored limits and budgets as time passes: midnights, races, lapses and new windows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import (
    AddBoost,
    Cancel,
    CreateAccount,
    EndQuota,
    Issue,
    Reserve,
    SetBudget,
    Settle,
    UpdateAccount,
)
from gpucredits.core.outcome import Boosted, Closed, Reserved
from gpucredits.core.period import Calendar, period_at
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Decision, Exhaustion
from support.scenes.gated import (
    ALICE,
    DAY_US,
    WINDOW,
    counters,
    quota,
    rate,
    refused,
    set_up,
    until_midnight,
)
from support.scenes.scene import CREDIT, HOUR_US, Scene, play, scene


def test_a_slice_across_midnight_is_counted_on_both_days(database: str) -> None:
    """What was used before midnight lies in one day, exactly, and the rest in the next."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await until_midnight(stage, before_s=40)
        await quota(stage, "acme", WINDOW, 1_000 * CREDIT)
        await quota(stage, ALICE, WINDOW, 1_000 * CREDIT, rolling_hours=1)
        lease = await stage.reserve(ALICE, window_ms=60_000)
        number = lease.reservation.reservation_id
        ends_at = lease.reservation.admitted_at // DAY_US * DAY_US + DAY_US
        await stage.advance(50)
        outcome = await stage.do(Settle(reservation_id=number, used_ms=50_000))
        assert isinstance(outcome, Closed)
        [row] = await stage.pool.fetch(
            "SELECT t.used AS before, c.used AS after, c.starts_at FROM tallies t JOIN counters c"
            " USING (org_id, quota_id) JOIN quotas q USING (org_id, quota_id)"
            " WHERE q.calendar = 0"
        )
        assert row["before"] + row["after"] == 50 * CREDIT
        assert row["starts_at"] == ends_at
        beat_at = await stage.pool.fetchval("SELECT max(beat_at) FROM reservations")
        elapsed = beat_at - lease.reservation.admitted_at
        assert row["before"] == 50 * CREDIT * (ends_at - lease.reservation.admitted_at) // elapsed
        rolling = await stage.pool.fetchval(
            "SELECT used FROM counters JOIN quotas USING (org_id, quota_id) WHERE rolling_hours = 1"
        )
        assert rolling == 50 * CREDIT

    play(database, act)


def test_two_replicas_reset_a_window_once(database: str) -> None:
    """Beats of both replicas meet at midnight: the day is closed once, and nothing is lost."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", WINDOW, 100_000 * CREDIT)
        await until_midnight(stage, before_s=30)
        leases = [
            await stage.reserve(ALICE, window_ms=120_000, job_id=f"job-{n}") for n in range(12)
        ]
        async with scene(database) as other:
            for seq, elapsed in ((1, 20), (2, 45), (3, 60)):
                await stage.advance(elapsed - (seq > 1) * (20, 20, 45)[seq - 1])
                halves = zip(leases, (stage, other) * 6, strict=True)
                await asyncio.gather(
                    *(replica.beat(lease, seq, elapsed * 1_000) for lease, replica in halves)
                )
        [row] = await stage.pool.fetch(
            "SELECT t.used + c.used AS used, c.held FROM tallies t JOIN counters c"
            " USING (org_id, quota_id)"
        )
        assert tuple(row) == (12 * 60 * CREDIT, 12 * 120 * CREDIT)
        assert await stage.pool.fetchval("SELECT count(*) FROM tallies") == 1

    play(database, act)


@pytest.mark.parametrize("hours", [23, 25])
def test_a_days_quota_knows_the_hour_that_is_missing_or_comes_twice(
    database: str, hours: int
) -> None:
    """The day on which Berlin's clocks change is one window, and the next begins afresh."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        now = (await stage.balance()).as_of
        starts_at, ends_at = period_at(Calendar.DAY, "Europe/Berlin", now)
        while ends_at - starts_at != hours * HOUR_US:
            starts_at, ends_at = period_at(Calendar.DAY, "Europe/Berlin", ends_at)
        berlin: dict[str, Any] = {"calendar": Calendar.DAY, "zone": "Europe/Berlin"}
        await quota(stage, "acme", WINDOW, 15 * CREDIT, **berlin)
        await stage.advance((starts_at - now) / 1_000_000)
        lease = await stage.reserve(ALICE)
        await stage.advance(9)
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number, used_ms=9_000))
        row = await stage.pool.fetchrow("SELECT starts_at, ends_at, used FROM counters")
        assert tuple(row) == (starts_at, ends_at, 9 * CREDIT)
        current = (await stage.balance()).as_of
        await stage.advance((ends_at - current) / 1_000_000 - 30)
        assert (await refused(stage)).detail["clears_at"] == ends_at
        await stage.advance(31)
        await stage.reserve(ALICE)

    play(database, act)


def test_a_boost_lapses_between_two_renewals(database: str) -> None:
    """While it lasts a lease holds more than its window allows; after it the lease drains."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        number = await quota(stage, "acme", WINDOW, 12 * CREDIT)
        now = (await stage.balance()).as_of
        boost = AddBoost(target_id=number, amount=100 * CREDIT, ends_at=now + 20 * CREDIT)
        assert isinstance(await stage.do(boost), Boosted)
        lease = await stage.reserve(ALICE)
        await stage.advance(8)
        assert (await stage.beat(lease, 1, 8_000)).decision is Decision.CONTINUE
        await stage.advance(9)
        assert (await stage.beat(lease, 2, 17_000)).decision is Decision.CONTINUE
        await stage.advance(4)
        beaten = await stage.beat(lease, 3, 21_000)
        assert (beaten.decision, beaten.reason) == (Decision.DRAIN, "quota_exceeded")
        assert beaten.held == 6 * CREDIT  # what it held stays its own

    play(database, act)


def test_a_rate_limit_outlives_its_boost(database: str) -> None:
    """Tokens beyond the capacity are gone when the boost is, though nobody looked in between."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        number = await rate(stage, "acme", 15 * CREDIT, 3_600 * CREDIT)
        now = (await stage.balance()).as_of
        boost = AddBoost(target_id=number, amount=50 * CREDIT, ends_at=now + 120 * CREDIT)
        assert isinstance(await stage.do(boost), Boosted)
        await stage.advance(100)
        lease = await stage.reserve(ALICE, milli_gpus=4_000)
        await stage.do(Cancel(reservation_id=lease.reservation.reservation_id))
        await stage.advance(60)
        assert (await refused(stage, milli_gpus=2_000)).reason is Reason.RATE_LIMITED
        await stage.reserve(ALICE)

    play(database, act)


def test_a_period_is_issued_once_whoever_does_it(database: str) -> None:
    """Two replicas and a sweeper find a new day at once: one period, one grant, one issue."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        budget = SetBudget(account=ALICE, allowance=50 * CREDIT, calendar=Calendar.DAY)
        await stage.do(budget)
        await until_midnight(stage, before_s=-1)
        [account_id] = await stage.pool.fetchrow(
            "SELECT account_id FROM accounts WHERE path = $1", ALICE
        )
        async with scene(database) as other:
            job: dict[str, Any] = {"job_id": "j", "gpu_type": "h100", "milli_gpus": 1_000}
            job |= {"account": ALICE, "payer": ALICE, "window_ms": 10_000}
            reserves = [Reserve(**job) for _ in range(4)]
            outcomes = await asyncio.gather(
                *(
                    replica.do(replace(each, node=(key := f"{id(replica)}-{place}")), key=key)
                    for place, each in enumerate(reserves)
                    for replica in (stage, other)
                ),
                *(replica.ledger.sweep(1, [account_id]) for replica in (stage, other)),
            )
        assert sum(isinstance(outcome, Reserved) for outcome in outcomes) == 5
        assert await stage.pool.fetchval("SELECT count(*) FROM budget_periods") == 2
        assert await stage.pool.fetchval("SELECT count(*) FROM grants WHERE budget_id <> 0") == 2
        issued = "SELECT sum(amount) FROM entries WHERE type = 1 AND account_id = $1"
        assert await stage.pool.fetchval(issued, account_id) == 100 * CREDIT

    play(database, act)


def test_limits_survive_on_what_was_agreed(database: str) -> None:
    """What a lease agreed to comes back from the store: it stops, drains or finishes as agreed."""

    async def act(stage: Scene) -> None:
        await stage.do(CreateAccount(path="acme"))
        await stage.do(Issue(account="acme", amount=30 * CREDIT))
        await stage.do(UpdateAccount(path="acme", overdraft_limit=20 * CREDIT))
        finish = await stage.reserve(exhaustion=Exhaustion.FINISH, overdraft=20 * CREDIT)
        stop = await stage.reserve(exhaustion=Exhaustion.STOP)
        drain = await stage.reserve(grace_ms=3_000)
        await stage.advance(5)
        beaten = await stage.beat(finish, 1, 5_000)
        assert (beaten.decision, beaten.reason) == (Decision.CONTINUE, "overdraft")
        assert (await stage.beat(stop, 1, 5_000)).decision is Decision.STOP
        beaten = await stage.beat(drain, 1, 5_000)
        assert beaten.decision is Decision.CONTINUE
        await stage.advance(9)
        beaten = await stage.beat(drain, 2, 14_000)
        assert beaten.decision is Decision.DRAIN
        assert beaten.signal_in_ms == max(beaten.expires_in_ms - 3_000, 0)
        beaten = await stage.beat(finish, 2, 14_000)
        assert beaten.settled == 14 * CREDIT
        assert beaten.decision is not Decision.STOP

    play(database, act)


def test_a_new_window_begins_with_what_was_spent_in_it(database: str) -> None:
    """A quota that is set at noon counts the morning, and a rolling one forgets it in time."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await until_midnight(stage, before_s=-60)
        lease = await stage.reserve(ALICE)
        await stage.advance(9)
        await stage.do(Settle(reservation_id=lease.reservation.reservation_id, used_ms=9_000))
        await stage.advance(30 * 60)
        await quota(stage, "acme", WINDOW, 15 * CREDIT)
        await quota(stage, "acme/vision", WINDOW, 15 * CREDIT, rolling_hours=1)
        assert [row[2] for row in await counters(stage)] == [9 * CREDIT, 9 * CREDIT]
        assert (await refused(stage)).detail["account"] == "acme"
        await quota(stage, "acme", WINDOW, 1_000 * CREDIT)
        assert (await refused(stage)).detail["account"] == "acme/vision"
        await stage.advance(31 * 60)
        await stage.reserve(ALICE)

    play(database, act)


def test_what_was_spent_before_adds_up_over_the_cells_of_a_window(database: str) -> None:
    """Seven seconds and a bit over many minutes do not divide evenly, and nothing is lost."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        lease = await stage.reserve(ALICE, window_ms=700_000)
        await stage.advance(613.7)
        await stage.do(Settle(reservation_id=lease.reservation.reservation_id, used_ms=7_001))
        await quota(stage, "acme", WINDOW, 15 * CREDIT, rolling_hours=1)
        await quota(stage, "acme/vision", WINDOW, 15 * CREDIT, rolling_hours=24)
        assert [row[2] for row in await counters(stage)] == [7_001_000, 7_001_000]

    play(database, act)


def test_an_org_without_limits_forgets_that_it_had_some(database: str) -> None:
    """The flag that makes a batch look for limits goes with the last of them."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        flags = []
        first = await quota(stage, "acme", WINDOW, 15 * CREDIT)
        second = await quota(stage, ALICE, Dimension.CONCURRENT_GPUS, 1_000)
        for number in (first, second):
            flags.append(await stage.pool.fetchval("SELECT gated FROM orgs WHERE path = 'acme'"))
            await stage.do(EndQuota(quota_id=number))
        flags.append(await stage.pool.fetchval("SELECT gated FROM orgs WHERE path = 'acme'"))
        assert flags == [True, True, False]
        await stage.reserve(ALICE, milli_gpus=2_000)

    play(database, act)
