"""allow_partial: several that come together share what is left, of every resource."""

from __future__ import annotations

from gpucredits.store.dispatch.queue import QueueState
from support.scenes.scene import Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on

ADMITTED, REFUSED = QueueState.ADMITTED, QueueState.REFUSED


async def until_decided(stage: Stage) -> int:
    """Cycles as they follow each other at once; how many."""
    dispatcher = stage.dispatcher("one")
    for number in range(1, 10):
        if not await dispatcher.cycle(stage.pool_id):
            return number
    raise AssertionError("it does not come to rest")


async def partial(stage: Stage, gpus: int, org: str = "acme", **more: int) -> tuple[int, int]:
    """A request that takes what is left now."""
    return await stage.ask(org, gpus, allow_partial=True, is_patient=False, **more)


def test_what_the_first_leaves_is_for_the_next(database: str) -> None:
    """Three come at once, for six of eight each: six, two, and a refusal."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            keys = [await partial(stage, 6) for _ in range(3)]
            await until_decided(stage)
            assert await stage.states(keys) == [ADMITTED, ADMITTED, REFUSED]
            assert [(await stage.ticket(key)).granted for key in keys[:2]] == [6_000, 2_000]
            assert await stage.held() == CAPACITY

    play(database, act)


def test_somebody_else_who_is_let_in_leaves_less_and_not_nothing(database: str) -> None:
    """Beside a plain request of five, whoever takes what is left takes three."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme", "beta")
            plain = await stage.ask("acme", 5, is_patient=False)
            key = await partial(stage, 6, org="beta")
            await until_decided(stage)
            assert await stage.states([plain, key]) == [ADMITTED] * 2
            assert (await stage.ticket(key)).granted == 3_000

    play(database, act)


def test_what_is_left_is_counted_in_every_resource(database: str) -> None:
    """With CPUs for half of it, half of the GPUs are given; with CPUs for none, none."""

    async def act(base: Scene) -> None:
        async with stage_on(base, cpus=64) as stage:
            await stage.fund("acme")
            await stage.ask("acme", 1, cpus=30)
            await until_decided(stage)
            some, none = await partial(stage, 8, cpus=64), await partial(stage, 1, cpus=64)
            await until_decided(stage)
            assert await stage.states([some, none]) == [ADMITTED, REFUSED]
            assert (await stage.ticket(some)).granted == 4_000

    play(database, act)
