"""Turns at orgs: in the order of arrival, never in a circle, and never lost."""

from __future__ import annotations

import asyncio
import random

from gpucredits.store.book.book_cache import OrgTurns
from support.waiting import HANGS_S


def test_one_at_a_time_at_each_org_and_all_come_to_an_end() -> None:
    """Batches over random orgs overlap only where they share none."""
    dice = random.Random(7)
    turns, inside, most = OrgTurns(), set[int](), 0

    async def batch(orgs: set[int]) -> None:
        nonlocal most
        async with turns.at(orgs):
            assert not inside & orgs
            inside.update(orgs)
            most = max(most, len(inside))
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(0)
            inside.difference_update(orgs)

    async def act() -> None:
        batches = [set(dice.sample(range(12), dice.randrange(1, 6))) for _ in range(300)]
        async with asyncio.timeout(HANGS_S):
            await asyncio.gather(*(batch(orgs) for orgs in batches))

    asyncio.run(act())
    assert most > 5  # some did run beside each other
    assert not turns.last


def test_who_came_first_goes_first() -> None:
    """The order at an org is that of arrival."""
    turns, order = OrgTurns(), list[int]()

    async def batch(number: int) -> None:
        async with turns.at([1]):
            await asyncio.sleep(0)
            order.append(number)

    async def act() -> None:
        await asyncio.gather(*(batch(number) for number in range(9)))

    asyncio.run(act())
    assert order == list(range(9))


def test_one_that_fails_or_gives_up_lets_the_next_go() -> None:
    """A turn ends however its batch ends."""
    turns, done = OrgTurns(), list[str]()

    async def fail() -> None:
        async with turns.at([1]):
            for _ in range(9):
                await asyncio.sleep(0)
            raise ValueError

    async def wait(name: str) -> None:
        async with turns.at([1, 2]):
            done.append(name)

    async def act() -> None:
        failing = asyncio.create_task(fail())
        await asyncio.sleep(0)
        waiting = asyncio.create_task(wait("given up"))
        last = asyncio.create_task(wait("last"))
        await asyncio.sleep(0)
        waiting.cancel()
        async with asyncio.timeout(HANGS_S):
            await asyncio.gather(failing, waiting, last, return_exceptions=True)

    asyncio.run(act())
    assert done == ["last"]
    assert not turns.last
