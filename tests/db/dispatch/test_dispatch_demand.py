"""Who counts as demand: nobody whom another gate would not let in takes a share or a place."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import Issue, UpdateAccount
from gpucredits.core.reasons import Refused
from gpucredits.service.dispatch.cycle import Dispatcher
from gpucredits.service.dispatch.queue import answer_of
from gpucredits.store.dispatch import queue
from gpucredits.store.dispatch.queue import QueueState
from support.scenes.scene import CREDIT, Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on, told_to_stop

CANNOT_PAY: dict[str, dict[str, Any]] = {
    "credits": {},
    "suspension": {"status": Status.SUSPENDED},
    "unpaid statement": {"delinquent": True},
}


async def penniless(stage: Stage, why: str = "credits") -> None:
    """An org ``evil`` that cannot pay."""
    await stage.fund("evil", amount=1 if why == "credits" else 1_000_000)
    if CANNOT_PAY[why]:
        await stage.base.do(UpdateAccount(path="evil", **CANNOT_PAY[why]), org="evil")


@pytest.mark.parametrize("why", CANNOT_PAY)
def test_who_cannot_pay_takes_no_share(database: str, why: str) -> None:
    """Half of the pool is fair for one of two that can pay, however much a third asks for."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await stage.fund("vic", "good")
            await stage.ask("vic", 4), await stage.ask("vic", 4)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            await penniless(stage, why)
            evil = [await stage.ask("evil", 4) for _ in range(5)]
            await stage.ask("good", 4)
            await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1
            assert (await stage.ticket(evil[0])).held_by == why

    play(database, act)


def test_who_cannot_pay_holds_no_place(database: str) -> None:
    """What is free is not kept for the first in line while it could not pay; then it is."""

    async def act(base: Scene) -> None:
        async with stage_on(base, preemption=False, hold_after_ms=1_000) as stage:
            await stage.fund("vic", "good")
            await stage.ask("vic", 4)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            await penniless(stage)
            await stage.ask("evil", CAPACITY)
            await base.advance(60)
            first = await stage.ask("good", 4)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([first]) == [QueueState.ADMITTED]
            await stage.settle(first)
            await base.do(Issue(account="evil", amount=100_000 * CREDIT), org="evil")
            await base.advance(11)
            second = await stage.ask("good", 4)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([second]) == [QueueState.WAITING]

    play(database, act)


def test_nobody_is_turned_away_for_one_who_cannot_pay(database: str) -> None:
    """Of two that do not wait the one who can pay is let in, though the other would come first."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("good")
            await penniless(stage)
            evil = [await stage.ask("evil", 4, is_patient=False) for _ in range(6)]
            good = await stage.ask("good", CAPACITY, is_patient=False)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([good]) == [QueueState.ADMITTED]
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states(evil) == [QueueState.REFUSED] * 6
            for key in evil:
                outcome = answer_of(await stage.ticket(key))
                assert isinstance(outcome, Refused)
                assert outcome.reason == "insufficient_credits"

    play(database, act)


def test_who_can_no_longer_pay_gives_its_place_up(database: str) -> None:
    """A request that could be paid when it came, and cannot any more, counts no longer."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await stage.fund("vic", "good", "evil")
            await stage.ask("vic", 4), await stage.ask("vic", 4)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            evil = await stage.ask("evil", 5)
            await dispatcher.cycle(stage.pool_id)
            assert (await stage.ticket(evil)).held_by == ""
            await base.do(UpdateAccount(path="evil", status=Status.SUSPENDED), org="evil")
            await base.advance(11)
            await stage.ask("good", 4)
            await dispatcher.cycle(stage.pool_id)
            assert (await stage.ticket(evil)).held_by == "suspension"
            assert await told_to_stop(stage) == 1

    play(database, act)


Asked = tuple[str, int, dict[str, Any]]


async def admitted(stage: Stage, dispatcher: Dispatcher, asked: list[Asked]) -> set[int]:
    """Which requests are let in, by their places; everything is undone again."""
    keys = [await stage.ask(org, gpus, **more) for org, gpus, more in asked]
    for _ in range(12):
        if not await dispatcher.cycle(stage.pool_id):
            break
    states = await stage.states(keys)
    for key, state in zip(keys, states, strict=True):
        if state == QueueState.ADMITTED:
            await stage.settle(key)
        async with stage.base.pool.acquire() as db:
            await queue.close(db, key, QueueState.CANCELED, b"null")
    return {place for place, state in enumerate(states) if state == QueueState.ADMITTED}


@pytest.mark.parametrize("seed", range(6))
def test_a_tenant_that_cannot_pay_changes_nobody_elses_luck(database: str, seed: int) -> None:
    """Whatever it asks for, the others' requests that are let in are those without it."""

    async def act(base: Scene) -> None:
        dice = Random(seed)  # not for secrets
        async with stage_on(base, preemption=False) as stage:
            orgs = ["abe", "bea", "fay"]
            await stage.fund(*orgs)
            await penniless(stage)
            dispatcher = stage.dispatcher("one")
            for _ in range(4):
                asked = [
                    (
                        dice.choice([*orgs, "evil", "evil"]),
                        dice.randrange(1, 7),
                        {"is_patient": dice.random() < 0.6, "priority": dice.randrange(3)},
                    )
                    for _ in range(dice.randrange(4, 14))
                ]
                others = [each for each in asked if each[0] != "evil"]
                alone = await admitted(stage, dispatcher, others)
                with_it = await admitted(stage, dispatcher, asked)
                places = [place for place, each in enumerate(asked) if each[0] != "evil"]
                assert with_it == {places[place] for place in alone}, asked

    play(database, act)
