"""Unusual spending: found once, with its reasons, and acted on only where that is wanted."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.account import Status, org_of
from gpucredits.core.authority import Authority
from gpucredits.core.bounds import HOUR_US
from gpucredits.core.command import Refund, Settle, UpdateAccount
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.risk import AnomalyTerms, check_spend, hourly_sums
from gpucredits.jobs.billing import Anomalies
from gpucredits.service.billing import anomalies
from gpucredits.service.billing.anomalies import OrgFilter, TermsRow, set_terms
from gpucredits.service.write.acts import Act, ActRefused
from gpucredits.store.billing import anomalies as rows
from gpucredits.store.billing.anomalies import MARKS_KEPT_HOURS
from gpucredits.store.ledger.due import DueCursor
from support.scenes.scene import CREDIT, Scene, play, scene

ALL = OrgFilter(before=(2**62, 0))


async def spend(stage: Scene, amount: int, account: str = "acme") -> int:
    """Spend so many credits now; the lease that did."""
    lease = await stage.reserve(account, milli_gpus=1_000 * amount, window_ms=1_000)
    number = lease.reservation.reservation_id
    await stage.advance(1)
    await stage.do(Settle(reservation_id=number, used_ms=1_000), org=org_of(account))
    return number


async def next_hour(stage: Scene) -> None:
    """Let the clock go to the next full hour and a bit."""
    now = (await stage.balance()).as_of
    await stage.advance(((now // HOUR_US + 1) * HOUR_US - now) / 1_000_000 + 1)


async def walk(job: Anomalies) -> None:
    """Let the job look at every account."""
    while await job.tick():
        pass


async def hours(stage: Scene, job: Anomalies, *amounts: int) -> None:
    """Spend so much in each hour; the job runs after each."""
    for amount in amounts:
        if amount:
            await spend(stage, amount)
        await next_hour(stage)
        await walk(job)


async def terms(stage: Scene, **given: Any) -> None:
    """Give acme terms of its own."""
    org_id = await stage.ledger.org_id("acme")
    assert org_id is not None
    row = TermsRow(**({"floor": 0} | given))
    act = Act(org_id=org_id, actor="me")
    assert await anomalies.set_terms(stage.pool, act, "acme", row, by=Authority.SYSTEM)


def test_an_unusual_hour_is_kept_with_its_reasons(database: str) -> None:
    """The row tells sum, median, threshold and window, and an event says so."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta", credits_each=10_000)
        job = Anomalies(stage.ledger)
        await hours(stage, job, *[50] * 8, 200, 201)
        [row] = await anomalies.list_anomalies(stage.pool, ALL)
        assert (row.account, row.observed, row.baseline) == ("acme", 201 * CREDIT, 50 * CREDIT)
        assert (row.threshold, row.hours, row.action) == (200 * CREDIT, 8, 0)
        assert row.ends_at - row.starts_at == HOUR_US
        assert row.starts_at < row.ends_at <= row.found_at
        assert "201 credits in this hour are above the threshold of 200" in row.sentence
        event = await stage.pool.fetchrow(
            "SELECT subject_id, payload ->> 'account' FROM outbox WHERE type = 'spend.unusual'"
        )
        assert tuple(event) == (row.anomaly_id, "acme")
        account = await stage.reads.account("acme")
        assert account is not None
        assert account.status is Status.ACTIVE

    play(database, act)


@pytest.mark.parametrize(
    ("given", "amounts", "is_found"),
    [
        ({}, [1, *[0] * 7, 1], True),
        ({"floor": 2 * CREDIT}, [1, *[0] * 7, 2], False),
        ({}, [1, *[0] * 5, 9], False),
        ({"ratio_percent": 200}, [*[10] * 8, 21], True),
        ({"ratio_percent": 200}, [*[10] * 8, 20], False),
    ],
    ids=["quiet hours count", "a floor", "too little history", "above a ratio", "at the ratio"],
)
def test_the_terms_decide(
    database: str, given: dict[str, int], amounts: list[int], *, is_found: bool
) -> None:
    """Ratio and floor are the account's own; hours without spending are part of its history."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        await terms(stage, **given)
        await hours(stage, Anomalies(stage.ledger), *amounts)
        assert bool(await anomalies.list_anomalies(stage.pool, ALL)) is is_found

    play(database, act)


def test_what_was_spent_before_the_first_look_is_not_judged(database: str) -> None:
    """A database that had no marks yet does not call years of spending one unusual hour."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=10_000)
        await terms(stage)
        await spend(stage, 5_000)
        await hours(stage, Anomalies(stage.ledger), *[0] * 8)
        assert await anomalies.list_anomalies(stage.pool, ALL) == []

    play(database, act)


def test_replicas_judge_an_hour_once(database: str) -> None:
    """Jobs of several servers, over small steps of the walk, find one and tell of it once."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", *(f"org{number}" for number in range(5)), credits_each=1_000)
        await terms(stage)
        await hours(stage, Anomalies(stage.ledger), 1, *[0] * 6)
        await spend(stage, 10)
        await next_hour(stage)
        async with scene(database) as other:
            jobs = [Anomalies(each.ledger, walk_max=2) for each in (stage, other, stage, other)]
            await asyncio.gather(*(walk(job) for job in jobs))
        assert len(await anomalies.list_anomalies(stage.pool, ALL)) == 1
        events = "SELECT count(*) FROM outbox WHERE type = 'spend.unusual'"
        assert await stage.pool.fetchval(events) == 1

    play(database, act)


def test_an_account_is_suspended_only_where_that_was_set(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, as the system, also when cut short in between; who was resumed stays resumed."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        await terms(stage, auto_suspend=True)
        job = Anomalies(stage.ledger)
        with monkeypatch.context() as patch:
            patch.setattr(rows, "note_action", nothing)
            await hours(stage, job, 1, *[0] * 6, 10)
        [row] = await anomalies.list_anomalies(stage.pool, ALL)
        assert row.action == 1
        await stage.do(UpdateAccount(path="acme", status=Status.ACTIVE))
        await walk(Anomalies(stage.ledger))
        [row] = await anomalies.list_anomalies(stage.pool, ALL)
        assert row.action == 2
        account = await stage.reads.account("acme")
        assert account is not None
        assert account.status is Status.ACTIVE
        acts = await stage.pool.fetch(
            "SELECT actor, new ->> 'status' FROM audit_log WHERE action = 'account.update'"
            " ORDER BY audit_id"
        )
        assert [tuple(act) for act in acts] == [("system:", "suspended"), ("tester", "active")]

    play(database, act)


def test_an_account_is_suspended_by_the_scope_that_set_the_terms(database: str) -> None:
    """Terms of the system's staff suspend so that a tenant's key cannot resume."""

    async def act(stage: Scene) -> None:
        path = "acme/vision"
        await stage.fund("acme", path, credits_each=1_000)
        org_id = await stage.ledger.org_id("acme")
        assert org_id is not None
        who, row = Act(org_id=org_id, actor="me"), TermsRow(floor=0, auto_suspend=True)
        for by in (Authority.ORG, Authority.SYSTEM):
            assert isinstance(await set_terms(stage.pool, who, path, row, by=by), tuple)
        with pytest.raises(ActRefused):
            await set_terms(stage.pool, who, path, row, by=Authority.ORG)
        job = Anomalies(stage.ledger)
        for amount in (1, *[0] * 6, 10):
            if amount:
                await spend(stage, amount, path)
            await next_hour(stage)
            await walk(job)
        resume = UpdateAccount(path=path, status=Status.ACTIVE, by=Authority.ORG)
        refused = await stage.do(resume)
        assert isinstance(refused, Refused)
        assert refused.reason is Reason.LIMIT_SET_ABOVE

    play(database, act)


async def nothing(*_: Any) -> None:
    """Stand for a process that is killed before this step."""


def test_a_refund_is_no_negative_spending(database: str) -> None:
    """An hour with more given back than spent counts as nothing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        await terms(stage)
        job = Anomalies(stage.ledger)
        await hours(stage, job, *[10] * 8)
        lease = await spend(stage, 5)
        await stage.do(Refund(reservation_id=lease, amount=5 * CREDIT))
        await hours(stage, job, 0, 40)
        assert await anomalies.list_anomalies(stage.pool, ALL) == []

    play(database, act)


def test_old_marks_go_but_for_the_last(database: str) -> None:
    """What an account spends after a long silence is still compared with what came before."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        await terms(stage)
        job = Anomalies(stage.ledger)
        await hours(stage, job, *[10] * 4)
        await stage.advance((MARKS_KEPT_HOURS + 10) * 3_600)
        await walk(job)
        assert await stage.pool.fetchval("SELECT count(*) FROM spend_marks") == 1
        await hours(stage, job, 30)
        assert len(await anomalies.list_anomalies(stage.pool, ALL)) == 1

    play(database, act)


def test_only_hours_above_the_floor_are_looked_into(database: str) -> None:
    """An account's own floor, or else that of all; nobody asks about the others one by one."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta", "gamma", "delta", credits_each=1_000)
        await terms(stage, floor=5 * CREDIT)
        job = Anomalies(stage.ledger)
        await hours(stage, job, 1)
        for account, amount in (("acme", 6), ("beta", 6), ("gamma", 100), ("delta", 101)):
            await spend(stage, amount, account)
        await next_hour(stage)
        hour = await anomalies.hour_now(stage.pool) - 1
        async with stage.pool.acquire() as db:
            spenders, _ = await rows.mark_hour(db, DueCursor(), hour=hour, walk_max=10)
        assert {spender.path for spender in spenders} == {"acme", "delta"}

    play(database, act)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_out_would_not_have_been_found(database: str, seed: int) -> None:
    """With quiet and missed hours, and refunds: judging everybody finds the same."""
    chance = random.Random(seed)  # a test's

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta", credits_each=100_000)
        await terms(stage, floor=10 * CREDIT)
        job = Anomalies(stage.ledger)
        expected: set[tuple[str, int]] = set()
        for _ in range(30):
            for account in ("acme", "beta"):
                amount = chance.choice((0, 0, 1, 9, 10, 11, 50, 100, 101, 400))
                if amount:
                    lease = await spend(stage, amount, account)
                    if chance.random() < 0.2:
                        back = Refund(reservation_id=lease, amount=amount * CREDIT // 2)
                        await stage.do(back, org=account)
            await next_hour(stage)
            if chance.random() < 0.2:
                continue  # nobody looked at this hour
            await walk(job)
            async with stage.pool.acquire() as db:
                for account in ("acme", "beta"):
                    expected |= await found_by_hand(db, account, job.hour)
        listed = await anomalies.list_anomalies(stage.pool, replace(ALL, limit=1_000))
        judged = {(row.account, row.starts_at // HOUR_US) for row in listed}
        assert judged == expected
        assert expected

    play(database, act)


async def found_by_hand(db: Any, account: str, hour: int) -> set[tuple[str, int]]:
    """What the rule says of an hour of an account, whatever was spent in it."""
    org_id, account_id = await db.fetchrow(
        "SELECT org_id, account_id FROM accounts WHERE path = $1", account
    )
    own = await rows.terms_of(db, org_id, account_id)
    rule = AnomalyTerms(ratio_percent=own.ratio_percent, floor=own.floor)
    spender = rows.Spender(org_id, account_id, account)
    marks = await rows.marks_of(db, spender, hour=hour, hours=rule.hours)
    sums = hourly_sums(marks, hour, rule.hours)
    return {(account, hour)} if sums and check_spend(sums, rule).unusual else set()
