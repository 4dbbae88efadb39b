"""Approvals that are cut short: whoever comes next finishes them, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpucredits.core.command import Issue
from gpucredits.core.request import (
    OPEN_MAX,
    OPEN_US,
    BudgetRequest,
    RequestKind,
    RequestState,
    RequestTerms,
)
from gpucredits.jobs.billing import Requests
from gpucredits.jobs.upkeep import Retention
from gpucredits.service.billing import budget_requests
from gpucredits.service.write.acts import Act, ActRefused
from gpucredits.service.write.errors import KeyReused
from support.scenes.scene import CREDIT, Scene, play, scene

STAFF = "key_0_2"


async def asked(stage: Scene, **change: Any) -> BudgetRequest:
    """An open request of acme for five credits."""
    await stage.fund("acme", credits_each=0)
    org_id = await stage.ledger.org_id("acme")
    assert org_id is not None
    usual: dict[str, Any] = {
        "org_id": org_id,
        "request_id": 0,
        "account": "acme",
        "kind": RequestKind.CREDITS,
        "amount": 5 * CREDIT,
        "reason": "why not",
        "asked_by": "key_1_1",
        "asked_at": 0,
        "expires_at": 0,
    }
    row, _ = await budget_requests.ask(
        stage.pool, Act(org_id=org_id, actor=STAFF), BudgetRequest(**(usual | change))
    )
    return row


async def approve(stage: Scene, row: BudgetRequest, key: str = "k") -> BudgetRequest:
    """Approve it on its own terms."""
    act = Act(org_id=row.org_id, key=key, fingerprint=key.encode(), actor=STAFF)
    done, _ = await budget_requests.approve(
        stage.ledger, act, row.request_id, terms=RequestTerms(amount=row.amount), note=""
    )
    return done


class Crash(Exception):  # noqa: N818  # it states what happened
    """The process died here."""


async def die(*_: Any, **__: Any) -> Any:
    """Stand for a process that is killed at this step."""
    raise Crash


@pytest.mark.parametrize("step", ["submit", "finish"])
@pytest.mark.parametrize("by_job", [True, False], ids=["by the job", "by a retry"])
def test_an_approval_cut_short_is_finished_once(
    database: str, monkeypatch: pytest.MonkeyPatch, step: str, *, by_job: bool
) -> None:
    """Killed before the ledger, or between it and the mark: there is one grant in the end."""

    async def act(stage: Scene) -> None:
        row = await asked(stage)
        with monkeypatch.context() as patch:
            patch.setattr(budget_requests, step, die)
            with pytest.raises(Crash):
                await approve(stage, row)
        half = await budget_requests.find(stage.pool, row.org_id, row.request_id)
        assert half is not None
        assert half.state is RequestState.APPROVING
        if by_job:
            await Requests(stage.ledger).tick()
        else:
            await approve(stage, row)
        done = await budget_requests.find(stage.pool, row.org_id, row.request_id)
        assert done is not None
        assert done.state is RequestState.APPROVED
        assert await stage.pool.fetchval("SELECT count(*) FROM grants") == 1
        applied = "SELECT count(*) FROM audit_log WHERE action = 'request.apply'"
        assert await stage.pool.fetchval(applied) == 1
        await Requests(stage.ledger).tick()
        assert (await stage.balance()).available == 5 * CREDIT

    play(database, act)


def test_replicas_repair_at_once_with_one_effect(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs of several servers meet at the ledger's key and at the org's lock."""

    async def act(stage: Scene) -> None:
        row = await asked(stage)
        with monkeypatch.context() as patch:
            patch.setattr(budget_requests, "submit", die)
            with pytest.raises(Crash):
                await approve(stage, row)
        async with scene(database) as other:
            jobs = [Requests(server.ledger) for server in (stage, other, stage, other)]
            await asyncio.gather(*(job.tick() for job in jobs))
        assert await stage.pool.fetchval("SELECT count(*) FROM grants") == 1
        applied = "SELECT count(*) FROM audit_log WHERE action = 'request.apply'"
        assert await stage.pool.fetchval(applied) == 1

    play(database, act)


def test_an_unfinished_approvals_key_is_not_forgotten(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a server was down between effect and mark, the effect is not done again."""

    async def act(stage: Scene) -> None:
        row = await asked(stage)
        with monkeypatch.context() as patch:
            patch.setattr(budget_requests, "finish", die)
            with pytest.raises(Crash):
                await approve(stage, row)
        await stage.advance(90 * 86_400)
        retention = Retention(stage.pool)
        await retention.tick()
        await Requests(stage.ledger).tick()
        assert await stage.pool.fetchval("SELECT count(*) FROM grants") == 1
        await retention.tick()
        assert await stage.pool.fetchval("SELECT count(*) FROM idempotency") == 0

    play(database, act)


def test_no_caller_can_take_the_key_of_an_approval(database: str) -> None:
    """A caller's keys are printable without spaces, so that none is a request's own."""

    async def act(stage: Scene) -> None:
        row = await asked(stage)
        assert " " in row.key
        await stage.do(Issue(account="acme", amount=CREDIT), key=row.key.replace(" ", "-"))
        await approve(stage, row)
        with pytest.raises(KeyReused):
            await approve(stage, row, key=row.key.replace(" ", "-"))
        assert (await stage.balance()).available == 6 * CREDIT

    play(database, act)


def test_expiry_is_written_down_once(database: str) -> None:
    """The job records it with the system as actor; racing jobs record it once."""

    async def act(stage: Scene) -> None:
        row = await asked(stage)
        await Requests(stage.ledger).tick()
        await stage.advance(OPEN_US / 1_000_000 + 1)
        await asyncio.gather(*(Requests(stage.ledger).tick() for _ in range(4)))
        acts = await stage.pool.fetch(
            "SELECT actor, new ->> 'state' AS state FROM audit_log WHERE action = 'request.expire'"
        )
        assert [tuple(act) for act in acts] == [("system:", "expired")]
        gone = await budget_requests.find(stage.pool, row.org_id, row.request_id)
        assert gone is not None
        assert gone.decided_at == gone.expires_at
        events = await stage.pool.fetch(
            "SELECT type FROM outbox WHERE type LIKE 'request.%' ORDER BY event_id"
        )
        assert [event["type"] for event in events] == ["request.asked", "request.expired"]

    play(database, act)


def test_requests_whose_time_is_over_make_room(database: str) -> None:
    """An account with as many open requests as it may have can ask again once they are over."""

    async def act(stage: Scene) -> None:
        row = await asked(stage)
        act = Act(org_id=row.org_id, actor=STAFF)
        for _ in range(OPEN_MAX - 1):
            await budget_requests.ask(stage.pool, act, row)
        with pytest.raises(ActRefused):
            await budget_requests.ask(stage.pool, act, row)
        await stage.advance(OPEN_US / 1_000_000)
        await budget_requests.ask(stage.pool, act, row)

    play(database, act)
