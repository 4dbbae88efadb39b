"""Months of accounts that pay later: closed once, paid by whatever comes in, or paused."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.core.account import Model, Status
from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import (
    Adjust,
    CreateAccount,
    Issue,
    Refund,
    Reserve,
    ReverseTopUp,
    UpdateAccount,
)
from gpucredits.core.outcome import Reserved, Reviewed
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.billing import Statements
from support.scenes.billing import (
    acme,
    billed,
    lines,
    listed,
    next_month,
    open_acme,
    past_due,
    pay,
    review,
    run,
    spend,
)
from support.scenes.scene import CREDIT, Scene, play, scene


def test_a_month_is_closed_into_its_lines(database: str) -> None:
    """Each month has its charges, payments and other credits, and opens where the last closed."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        await stage.fund("prepaid", credits_each=5)
        await spend(stage, 100)
        await run(stage)
        assert await listed(stage) == []
        await next_month(stage)
        await run(stage)
        await spend(stage, 30)
        await pay(stage, 60)
        await stage.do(Issue(account="acme", amount=5 * CREDIT))
        await next_month(stage)
        await run(stage)
        first, second = await listed(stage)
        assert lines(first) == (0, 100, 0, 0, 100, 100)
        assert lines(second) == (100, 30, 60, 5, 65, 30)
        assert [seen.outstanding // CREDIT for seen in (first, second)] == [35, 30]
        assert first.row.ends_at == second.row.starts_at
        assert first.row.due_at - first.row.closed_at == DUE_DAYS * DAY_US
        acts = "SELECT actor, action, resource FROM audit_log WHERE action LIKE 'statement%'"
        assert {tuple(row) for row in await stage.pool.fetch(acts)} == {
            ("system:", "statement.close", "acme")
        }
        events = "SELECT count(*) FROM outbox WHERE type = 'statement.closed'"
        assert await stage.pool.fetchval(events) == 2

    play(database, act)


def test_months_of_all_are_caught_up_however_small_the_steps(database: str) -> None:
    """Each walk closes one month of each account: as long as there are any, another follows."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        for number in range(4):
            path = f"acme/{number}"
            await stage.do(CreateAccount(path=path, model=Model.POSTPAID, credit_limit=1))
        for _ in range(2):
            await next_month(stage)
        job = Statements(stage.ledger, walk_max=2, accounts_max=1)
        for _ in range(2 * 5 + 4):
            await job.tick()
        assert len(await listed(stage)) == 2 * 5
        assert not job.is_closing
        await stage.advance(3_600)
        await job.tick()
        assert not job.is_closing  # neither a month nor a minute has passed
        await next_month(stage)
        await job.tick()
        assert len(await listed(stage)) == 2 * 5 + 1

    play(database, act)


def test_months_are_caught_up_after_a_downtime(database: str) -> None:
    """Nobody closed for three months: there are three statements, and the charge is in its own."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        await next_month(stage)
        await spend(stage, 10)
        await next_month(stage)
        await next_month(stage)
        await run(stage)
        assert [lines(seen) for seen in await listed(stage)] == [
            (0, 0, 0, 0, 0, 0),
            (0, 10, 0, 0, 10, 10),
            (10, 0, 0, 0, 10, 0),
        ]
        [account] = {seen.row.due_at > seen.at for seen in await listed(stage)}
        assert account  # the time to pay counts from the closing, not from the month
        assert not (await acme(stage)).delinquent

    play(database, act)


def test_replicas_close_a_month_once(database: str) -> None:
    """Jobs of several servers at once leave one statement, one act and one event for a month."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        await spend(stage, 10)
        await next_month(stage)
        async with scene(database) as other:
            jobs = [Statements(each.ledger) for each in (stage, other, stage, other)]
            await asyncio.gather(*(job.tick() for job in jobs))
        for query in (
            "SELECT count(*) FROM statements",
            "SELECT count(*) FROM audit_log WHERE action = 'statement.close'",
            "SELECT count(*) FROM outbox WHERE type = 'statement.closed'",
        ):
            assert await stage.pool.fetchval(query) == 1

    play(database, act)


def test_an_overdue_account_is_paused_until_it_pays(database: str) -> None:
    """At the due date it admits nothing and drains; the payment of what is overdue resumes it."""

    async def act(stage: Scene) -> None:
        await billed(stage, 100)
        await spend(stage, 7)
        await stage.advance(DUE_DAYS * 86_400 - 60)
        await run(stage)
        assert not (await acme(stage)).delinquent
        lease = await stage.reserve(window_ms=240_000, grace_ms=120_000)
        await stage.advance(61)
        await run(stage)
        assert (await acme(stage)).delinquent
        beaten = await stage.beat(lease, 1, 1_000)
        assert (beaten.decision.value, beaten.reason) == ("drain", "account_delinquent")
        refused = await stage.do(
            Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
        )
        assert isinstance(refused, Refused)
        assert refused.reason is Reason.ACCOUNT_DELINQUENT
        await pay(stage, 99)
        await run(stage)
        assert (await acme(stage)).delinquent
        await pay(stage, 1)
        await run(stage)
        assert not (await acme(stage)).delinquent
        assert isinstance(
            await stage.do(Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)),
            Reserved,
        )
        acts = await stage.pool.fetch(
            "SELECT actor, new ->> 'delinquent' AS now, new ->> 'why' AS why FROM audit_log"
            " WHERE action = 'account.standing' ORDER BY audit_id"
        )
        assert [(act["actor"], act["now"]) for act in acts] == [
            ("system:", "true"),
            ("system:", "false"),
        ]
        assert acts[0]["why"].startswith("100 credits are overdue since")
        told = "SELECT type, payload ->> 'path' FROM outbox WHERE type LIKE 'account.%' ORDER BY 1"
        assert [tuple(row) for row in await stage.pool.fetch(told)] == [
            ("account.delinquent", "acme"),
            ("account.opened", "acme"),
            ("account.resumed", "acme"),
        ]

    play(database, act)


@pytest.mark.parametrize("way", ["grant", "refund", "top-up"])
def test_whatever_comes_in_pays(database: str, way: str) -> None:
    """A grant that forgives, a refund, or a payment that names no statement pays it as well."""

    async def act(stage: Scene) -> None:
        lease = await billed(stage, 100)
        if way == "grant":
            await stage.do(Issue(account="acme", amount=100 * CREDIT))
        elif way == "refund":
            await stage.do(Refund(reservation_id=lease, amount=100 * CREDIT))
        else:
            await pay(stage, 100)
        await spend(stage, 200)  # what is charged since does not take the payment away
        await past_due(stage)
        await run(stage)
        reviewed = await stage.do(await review(stage))
        assert isinstance(reviewed, Reviewed)
        assert (reviewed.overdue, reviewed.changed) == (0, False)
        assert not (await acme(stage)).delinquent
        [seen] = [each for each in await listed(stage) if each.row.charges == 100 * CREDIT]
        assert (seen.outstanding, seen.state) == (0, "paid")

    play(database, act)


def test_a_payment_taken_back_is_owed_again(database: str) -> None:
    """The statement that it had paid is overdue once more, and the account is paused."""

    async def act(stage: Scene) -> None:
        await billed(stage, 100)
        paid = await pay(stage, 100)
        await past_due(stage)
        await run(stage)
        assert not (await acme(stage)).delinquent
        await stage.do(ReverseTopUp(topup_id=paid.topup.topup_id))
        await run(stage)
        assert (await acme(stage)).delinquent
        assert (await listed(stage))[0].state == "overdue"

    play(database, act)


def test_refunds_and_adjustments_are_in_their_lines(database: str) -> None:
    """An adjustment is a charge; a refund is a credit, also for what an earlier month charged."""

    async def act(stage: Scene) -> None:
        lease = await billed(stage, 100)
        await stage.do(Refund(reservation_id=lease, amount=40 * CREDIT))
        await stage.do(Adjust(reservation_id=lease, amount=10 * CREDIT))
        await next_month(stage)
        await run(stage)
        first, second = await listed(stage)
        assert lines(second) == (100, 10, 0, 40, 70, 10)
        assert [seen.outstanding // CREDIT for seen in (first, second)] == [60, 10]

    play(database, act)


def test_a_payment_beats_a_pause_that_was_decided_before_it(
    database: str,
) -> None:
    """The job saw a debt, the payment came, then the job's command: the ledger looks again."""

    async def act(stage: Scene) -> None:
        await billed(stage, 100)
        await past_due(stage)
        stale = await review(stage)
        await pay(stage, 100)
        outcome = await stage.do(stale)
        assert isinstance(outcome, Reviewed)
        assert not outcome.changed
        assert not (await acme(stage)).delinquent

    play(database, act)


def test_what_follows_a_pause_in_its_batch_is_refused(database: str) -> None:
    """A job that is asked for together with the pause is not admitted any more."""

    async def act(stage: Scene) -> None:
        await billed(stage, 100)
        await past_due(stage)
        job = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
        requests = [stage.request(await review(stage)), stage.request(job)]
        for outcome in await stage.ledger.submit_all("acme", requests, atomic=True):
            assert isinstance(outcome, Refused)
            assert outcome.reason is Reason.ACCOUNT_DELINQUENT

    play(database, act)


def test_a_payment_while_being_paused_leaves_the_account_running(database: str) -> None:
    """Payments and jobs of several servers at once: in the end it has paid and runs."""

    async def act(stage: Scene) -> None:
        await billed(stage, 100)
        await past_due(stage)
        async with scene(database) as other:
            jobs = [Statements(each.ledger).tick() for each in (stage, other) * 3]
            await asyncio.gather(*jobs, *(pay(stage, 50) for _ in range(2)))
            await run(other)
        assert not (await acme(stage)).delinquent

    play(database, act)


def test_an_operators_suspension_is_not_lifted_by_a_payment(database: str) -> None:
    """Delinquency and suspension are two marks: paying ends one of them."""

    async def act(stage: Scene) -> None:
        await billed(stage, 100)
        await past_due(stage)
        await run(stage)
        await stage.do(UpdateAccount(path="acme", status=Status.SUSPENDED))
        await pay(stage, 100)
        await run(stage)
        account = await acme(stage)
        assert (account.delinquent, account.status) == (False, Status.SUSPENDED)

    play(database, act)


def test_statements_are_only_added(database: str) -> None:
    """The database refuses to change or remove a statement."""

    async def act(stage: Scene) -> None:
        await open_acme(stage)
        await next_month(stage)
        await run(stage)
        for query in ("UPDATE statements SET amount = 0", "DELETE FROM statements"):
            with pytest.raises(Exception, match="insert-only"):
                await stage.pool.execute(query)

    play(database, act)
