"""The reconciler on a real database: it posts what differs, once, whoever runs it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import Issue
from gpucredits.core.outcome import Granted
from gpucredits.core.reconciliation.comparison import Mode
from gpucredits.jobs.reconciler import Reconciler
from gpucredits.service.billing.prices import NewPrice, add_price
from gpucredits.service.reconciliation import passes
from gpucredits.service.reconciliation.drift_alarms import AlarmFilter, acknowledge, list_alarms
from gpucredits.service.reconciliation.passes import (
    ComparedFilter,
    PassResult,
    Wanted,
    list_comparisons,
    run_pass,
)
from gpucredits.service.write.acts import Act
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.reconciliation.comparisons import DIFFERS, POSTED, UNMEASURED
from support.scenes.reconciling import (
    QUIET_S,
    entry_count,
    lease_now,
    look,
    measure,
    policy,
    run,
    settled,
)
from support.scenes.scene import CREDIT, PRICE, Scene, play

ALL = (2**62, 0)
ACT = Act(org_id=1, actor="tester")


async def alarms_of(stage: Scene) -> list[Any]:
    """Every alarm."""
    return await list_alarms(stage.pool, AlarmFilter(before=ALL))


def test_what_differs_is_posted_once_at_the_pinned_price(database: str) -> None:
    """More and less than was settled, after a price change; a second pass posts nothing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        less, more = await settled(stage, 60_000), await settled(stage, 60_000)
        await stage.pool.execute("SELECT setval('price_numbers', 1)")  # the scene's is 1
        new = NewPrice(
            gpu_type="h100", region="default", credits_per_gpu_hour=2 * PRICE, effective_from=None
        )
        await add_price(stage.pool, Act(org_id=0, actor="tester"), new)
        await measure(stage, less, (0, 40_000))
        await measure(stage, more, (0, 50_000), (50_000, 75_500))
        assert (await run(stage)).compared == 0  # not quiet yet
        await stage.advance(QUIET_S)
        done = await run(stage)
        assert (done.posted, done.charged, done.given_back) == (2, 15_500_000, 20 * CREDIT)
        assert (await lease_now(stage, less)).charged == 40 * CREDIT
        assert (await lease_now(stage, more)).charged == 75_500_000
        entries = await entry_count(stage)
        again = await run(stage, at_once=True, again=True)
        assert (again.posted, await entry_count(stage)) == (0, entries)

    play(database, act)


def test_events_that_come_later_are_posted_later(database: str) -> None:
    """A lease is compared again when events arrive, and only what is new is posted."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 10_000)
        amounts = []
        for end in (20_000, 30_000, 30_000):
            await measure(stage, lease, (0, end))
            await stage.advance(QUIET_S)
            amounts.append((await run(stage)).charged)
        assert amounts == [10 * CREDIT, 10 * CREDIT, 0]

    play(database, act)


def test_a_report_policy_posts_nothing_until_it_is_changed(database: str) -> None:
    """The default reports; ``again`` applies a new policy to what was reported."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        lease = await settled(stage, 10_000)
        await measure(stage, lease, (0, 20_000))
        await stage.advance(QUIET_S)
        done = await run(stage)
        assert (done.differed, done.posted) == (1, 0)
        [row] = await list_comparisons(stage.pool, ComparedFilter(before=ALL))
        assert (row.state, row.cost - row.settled) == (DIFFERS, 10 * CREDIT)
        await policy(stage)
        assert (await run(stage)).compared == 0
        assert (await run(stage, again=True)).charged == 10 * CREDIT
        await policy(stage, mode=Mode.OFF)
        await measure(stage, lease, (0, 30_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).posted == 0

    play(database, act)


def test_a_lease_without_measurements_keeps_its_bill(database: str) -> None:
    """Heartbeats alone are no drift: a late report makes a lease due, and nothing is refunded."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        held = await stage.reserve(window_ms=10_000)
        await stage.advance(20)
        await stage.beat(held, 1, 9_000)
        await stage.advance(QUIET_S)
        assert (await run(stage)).posted == 0
        [row] = await list_comparisons(stage.pool, ComparedFilter(before=ALL))
        assert (row.state, row.events) == (UNMEASURED, 0)

    play(database, act)


def test_a_late_heartbeat_is_not_charged_beside_the_same_measured_use(database: str) -> None:
    """Use that the reconciler charged and a late report then settles is given back once."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        held = await stage.reserve(window_ms=10_000, node="n1")
        await measure(stage, held.reservation, (0, 10_000))
        await stage.advance(QUIET_S + 30)
        await stage.beat(held, 1, 0)  # it has lapsed
        assert (await run(stage)).charged == 10 * CREDIT
        await stage.beat(held, 2, 10_000)
        assert (await lease_now(stage, held.reservation)).charged == 20 * CREDIT
        await stage.advance(QUIET_S)
        assert (await run(stage)).given_back == 10 * CREDIT
        assert (await lease_now(stage, held.reservation)).charged == 10 * CREDIT

    play(database, act)


def test_nodes_side_by_side_and_repeated_intervals_count_once(database: str) -> None:
    """Two nodes of one lease measure the same time, one of them twice."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 30_000, node="")
        await measure(stage, lease, (0, 20_000), (10_000, 30_000), (5_000, 7_000), node="a")
        await measure(stage, lease, (0, 30_000), node="b")
        assert await measure(stage, lease, (0, 30_000), node="b", seq=7_777) == 1
        assert await measure(stage, lease, (0, 99_000), node="b", seq=7_777) == 0
        await stage.advance(QUIET_S)
        done = await run(stage)
        assert (done.compared, done.agreed, done.posted) == (1, 1, 0)

    play(database, act)


def test_expired_credits_of_the_time_of_use_pay_first(database: str) -> None:
    """Use that arrives after its payer's credits have expired is paid by them."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=500)
        now = (await stage.balance()).as_of
        ending = await stage.do(
            Issue(account="acme", amount=50 * CREDIT, expires_at=now + 60_000_000)
        )
        assert isinstance(ending, Granted)
        await policy(stage)
        lease = await settled(stage, 10_000, s=40)
        await measure(stage, lease, (0, 35_000))
        await stage.advance(QUIET_S)
        before = await stage.balance()
        assert (await run(stage)).charged == 25 * CREDIT
        after = await stage.balance()
        assert after.available == before.available
        assert after.spent == before.spent + 25 * CREDIT
        paid = (await lease_now(stage, lease)).paid
        assert paid == ((ending.grant.grant_id, 35 * CREDIT),)

    play(database, act)


def test_two_servers_at_once_post_one_correction(database: str) -> None:
    """Both compare the same lease: the claim is taken from under the first, as after a pause."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        leases = [await settled(stage, 10_000, s=30) for _ in range(6)]
        for lease in leases:
            await measure(stage, lease, (0, 20_000))
        await stage.advance(QUIET_S)
        await look(stage)
        other = Ledger(stage.pool)

        async def compare(ledger: Ledger) -> PassResult:
            return await run_pass(ledger, Wanted(at_once=True, again=True))

        try:
            done = await asyncio.gather(*(compare(each) for each in (stage.ledger, other) * 3))
        finally:
            await other.stop()
        assert sum(each.compared for each in done) > len(leases)  # the control: some met
        for lease in leases:
            assert (await lease_now(stage, lease)).charged == 20 * CREDIT

    play(database, act)


@pytest.mark.parametrize("step", ["before the post", "after the post"])
def test_a_server_that_dies_between_two_steps_leaves_nothing_half_done(
    database: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next pass posts what was not posted, and nothing twice."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 10_000)
        await measure(stage, lease, (0, 20_000))
        await stage.advance(QUIET_S)
        post = passes.post

        async def dies(*args: Any, **kwargs: Any) -> int:
            if step == "after the post":
                await post(*args, **kwargs)
            raise ConnectionResetError

        monkeypatch.setattr(passes, "post", dies)
        with pytest.raises(ConnectionResetError):
            await run(stage)
        monkeypatch.setattr(passes, "post", post)
        assert (await run(stage)).compared == 0  # it is claimed for a minute
        await stage.advance(61)
        await run(stage)
        assert (await lease_now(stage, lease)).charged == 20 * CREDIT
        [row] = await list_comparisons(stage.pool, ComparedFilter(before=ALL))
        assert (row.state, row.reconciled) == (POSTED, 10 * CREDIT)

    play(database, act)


def test_drift_raises_an_alarm_at_its_threshold_with_evidence(database: str) -> None:
    """Just below nothing, at the threshold one for the job and one for the account's day."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage, mode=Mode.REPORT, alarm_percent=10, alarm_floor=5 * CREDIT)
        now = (await stage.balance()).as_of
        await stage.advance((DAY_US - now % DAY_US) / 1_000_000 + 3_600)  # all of it on one day
        below = await settled(stage, 45_001)
        await measure(stage, below, (0, 50_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).alarms == 0
        lease = await settled(stage, 45_000)
        await measure(stage, lease, (0, 50_000), node="n9")
        await stage.advance(QUIET_S)
        assert (await run(stage)).alarms == 1  # 9.999 credits of the day's 100 are below it
        last = await settled(stage, 49_999)
        await measure(stage, last, (0, 50_001))
        worse = await settled(stage, 44_000)
        await measure(stage, worse, (0, 50_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).alarms == 1  # for the job: 16 of 200 credits is below too
        least = await settled(stage, 50_000)
        await measure(stage, least, (0, 44_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).alarms == 1
        assert len(await alarms_of(stage)) == 3
        much = await settled(stage, 90_000)
        await measure(stage, much, (0, 70_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).alarms == 2  # 42 of 340: now the account's day has drifted too
        day, *_, job = await alarms_of(stage)
        assert (job.job_id, job.drift, job.settled) == ("job", 5 * CREDIT, 45 * CREDIT)
        assert job.evidence["heartbeats"]["used_ms"] == 45_000
        assert job.evidence["measured"]["nodes"][0]["node"] == "n9"
        assert job.evidence["ledger"]["settled"] == "45"
        assert (day.reservation_id, day.drift) == (0, 42_001_000)
        told = await stage.pool.fetch("SELECT type FROM outbox WHERE type = 'drift.alarm'")
        assert len(told) == 5
        assert (await run(stage, again=True)).alarms == 0
        seen, _ = await acknowledge(stage.pool, ACT, job.alarm_id, "a meter was off")
        assert (seen.is_open, seen.acknowledged_by) == (False, "tester")

    play(database, act)


def test_use_after_the_end_of_a_lease_is_an_alarm_and_no_charge(database: str) -> None:
    """A job that outlived its lease is seen, whatever its bill."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 99_000, s=100)
        await measure(stage, lease, (0, 150_000))
        await stage.advance(QUIET_S)
        done = await run(stage)
        ended = await lease_now(stage, lease)
        inside_ms = (ended.ended_at - ended.admitted_at) // 1_000
        assert inside_ms < 120_000
        assert (done.charged, done.alarms) == (inside_ms * 1_000 - 99 * CREDIT, 1)

    play(database, act)


def test_the_job_does_all_of_it(database: str) -> None:
    """One tick notes, compares, posts and counts; a dry run changes nothing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 10_000)
        await measure(stage, lease, (0, 20_000))
        await stage.advance(QUIET_S)
        await look(stage)
        tried = await run_pass(stage.ledger, Wanted(), dry_run=True)
        assert (tried.posted, tried.charged) == (1, 10 * CREDIT)
        assert (await lease_now(stage, lease)).charged == 10 * CREDIT
        await stage.advance(61)
        job = Reconciler(stage.ledger)
        while await job.tick():
            pass
        assert (await lease_now(stage, lease)).charged == 20 * CREDIT
        assert (job.state.compared_total, job.state.posted_total) == (1, 1)
        assert job.state.counts is not None
        assert (job.state.counts.due, job.state.counts.open_alarms) == (0, 2)

    play(database, act)
