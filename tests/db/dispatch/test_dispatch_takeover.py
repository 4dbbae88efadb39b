"""Two servers that both finish one claim: however their steps interleave, there is one lease."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from gpucredits.core.command import SetRateLimit
from gpucredits.service.dispatch.admission import Admitting
from gpucredits.store.dispatch.queue import QueuedRequest, QueueState
from support.scenes.scene import CREDIT, Scene, play, scene
from support.scenes.stage import stage_on


class Slow(Admitting):
    """Asks the ledger, and writes down what it said only once it is let to."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.answered = 0
        self.has_asked = asyncio.Event()
        self.may_write = asyncio.Event()

    async def _ask(self, group: Sequence[QueuedRequest], verdicts: Any) -> Any:
        answers = await super()._ask(group, verdicts)
        self.answered += 1
        if self.answered == 2:
            self.has_asked.set()
        await self.may_write.wait()
        return answers


def test_a_claim_that_was_told_to_slow_down_is_told_so_again(database: str) -> None:
    """One is told 429 and stalls; another asks for the same claim when there are tokens again.

    The first then gives the room back. A lease of the second would be nobody's.
    """

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage, scene(database) as other:
            await stage.fund("acme")
            hour = 3_600 * CREDIT
            limit = SetRateLimit(account="acme", capacity=hour, refill_per_hour=6 * hour)
            await base.do(limit)
            keys = [await stage.ask("acme") for _ in range(2)]
            dispatcher = stage.dispatcher("one", lease_us=0)
            dispatcher.admitting = first = Slow(base.ledger)
            second = Slow(other.ledger)
            cycle = asyncio.create_task(dispatcher.cycle(stage.pool_id))
            await first.has_asked.wait()
            await base.advance(601)
            recovery = asyncio.create_task(second.recover(stage.pool_id))
            await second.has_asked.wait()
            first.may_write.set()
            await cycle
            second.may_write.set()
            await recovery
            await base.advance(611)
            later = stage.dispatcher("later")
            for _ in range(3):
                await later.cycle(stage.pool_id)
            assert await stage.states(keys) == [QueueState.ADMITTED] * 2
            assert await base.pool.fetchval("SELECT count(*) FROM reservations") == 2

    play(database, act)
