"""What those who wait are told in a queue that is longer than what one cycle writes down."""

from __future__ import annotations

import pytest

from gpucredits.service.dispatch import queue
from support.scenes.scene import Scene, play
from support.scenes.stage import CAPACITY, stage_on

WRITTEN = 3


def test_the_back_of_a_queue_that_moves_gets_its_places(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cycle moves everybody up: who was told nothing comes first, then all in turn."""
    monkeypatch.setattr(queue, "PLACES_MAX", WRITTEN)

    async def act(base: Scene) -> None:
        async with stage_on(base, preemption=False) as stage:
            await stage.fund("acme")
            dispatcher = stage.dispatcher("one")
            running = await stage.ask("acme", CAPACITY)
            await dispatcher.cycle(stage.pool_id)
            keys = [await stage.ask("acme", CAPACITY) for _ in range(9)]

            async def move() -> list[int]:
                nonlocal running
                await dispatcher.cycle(stage.pool_id)
                before = [(await stage.ticket(key)).position for key in keys]
                await stage.settle(running)
                running = keys.pop(0)
                return before

            assert await move() == [1, 2, 3, 0, 0, 0, 0, 0, 0]
            assert [*map(bool, await move())] == [True] * 5 + [False] * 3
            assert all(await move())
            told = [await move() for _ in range(3)]
            assert any(places[0] == 1 for places in told)
            assert any(places[-1] == len(places) for places in told)

    play(database, act)
