"""Gangs whose name is used again: each run starts, waits and gives up on its own, and whole."""

from __future__ import annotations

from gpucredits.service.write.acts import Act
from gpucredits.store.dispatch.queue import QueueState
from support.scenes.scene import Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on

ADMITTED, WAITING, CANCELED = QueueState.ADMITTED, QueueState.WAITING, QueueState.CANCELED


async def members(stage: Stage, count: int, gpus: int = 1) -> list[tuple[int, int]]:
    """So many members of gangs of two that have one name."""
    return [await stage.ask("acme", gpus, gang="g", gang_size=2) for _ in range(count)]


def test_a_member_of_the_next_run_does_not_start_with_the_last(database: str) -> None:
    """Of three the first two are a gang; the third waits for its own partner, then both start."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            keys = await members(stage, 3)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states(keys) == [ADMITTED, ADMITTED, WAITING]
            assert (await stage.ticket(keys[2])).reason == "gang_incomplete"
            keys += await members(stage, 1)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states(keys) == [ADMITTED] * 4

    play(database, act)


def test_a_run_that_can_be_paid_does_not_wait_for_one_that_cannot(database: str) -> None:
    """Credits for one of two runs that have their room: the first starts, the other waits."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme", amount=10_000)  # a member holds 3,600
            keys = await members(stage, 4)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await stage.states(keys) == [ADMITTED, ADMITTED, WAITING, WAITING]
            assert (await stage.ticket(keys[2])).held_by == "credits"

    play(database, act)


def test_a_run_is_asked_about_on_its_own_before_work_is_stopped(database: str) -> None:
    """In a full pool the run that can be paid makes its room, whatever comes behind it."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await stage.fund("vic")
            for _ in range(2):
                await stage.ask("vic", CAPACITY // 2)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            await stage.fund("acme", amount=15_000)  # a member holds 7,200
            keys = await members(stage, 3, gpus=2)
            await dispatcher.cycle(stage.pool_id)
            assert (await stage.ticket(keys[0])).reason == "making_room"

    play(database, act)


def test_giving_up_one_run_leaves_the_other_waiting(database: str) -> None:
    """Whoever cancels a member cancels its own run only."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            keys = await members(stage, 3)
            done, _ = await stage.line.cancel(Act(org_id=keys[1][0], actor="tester"), keys[1])
            assert done
            assert await stage.states(keys) == [CANCELED, CANCELED, WAITING]

    play(database, act)
