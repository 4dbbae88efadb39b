"""Long steps: one in a few rounds of the loop, batches first, and nobody is forgotten."""

from __future__ import annotations

import asyncio

from gpucredits.service.write.batch import long_step
from support.waiting import HANGS_S


def test_between_two_long_steps_are_rounds_for_short_ones() -> None:
    """Ten tasks with a long step each: one of four short steps waits for one of them."""

    async def act() -> list[str]:
        seen: list[str] = []

        async def long(number: int) -> None:
            await long_step()
            seen.append(f"long {number}")

        async def short() -> None:
            for _ in range(3):
                await asyncio.sleep(0)
            seen.append("short")

        await asyncio.gather(*(long(number) for number in range(10)), short())
        return seen

    seen = asyncio.run(act())
    assert [each for each in seen if each != "short"] == [f"long {number}" for number in range(10)]
    assert seen.index("short") == 1


def test_who_gives_up_is_passed_over() -> None:
    """A task that is cancelled while it waits takes nobody's turn."""

    async def act() -> list[int]:
        seen: list[int] = []

        async def long(number: int) -> None:
            await long_step()
            seen.append(number)

        tasks = [asyncio.create_task(long(number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(long(9), HANGS_S)
        return seen

    assert asyncio.run(act()) == [0, 2, 3, 9]


def test_a_batch_under_way_goes_before_those_that_begin() -> None:
    """Others wait for what it is at work on."""

    async def act() -> list[str]:
        seen: list[str] = []

        async def long(name: str, batch: int | None = None) -> None:
            await long_step(batch)
            seen.append(name)

        await asyncio.gather(long("first"), long("report"), long("batch", 0), long("answer"))
        return seen

    assert asyncio.run(act()) == ["first", "batch", "report", "answer"]


def test_batches_do_not_hold_each_other_up() -> None:
    """The one that began first takes all its steps, and is with the database while others do."""

    async def act() -> list[int]:
        seen: list[int] = []

        async def batch(number: int) -> None:
            for _ in range(3):
                await long_step(number)
                seen.append(number)

        await asyncio.gather(*(batch(number) for number in (2, 0, 1)))
        return seen

    assert asyncio.run(act()) == [2, 0, 0, 0, 1, 1, 1, 2, 2]


def test_those_that_begin_are_not_starved_by_batches() -> None:
    """While batches ask without end, every fourth turn is that of somebody else who waits."""

    async def act() -> list[str]:
        seen: list[str] = []

        async def batch(number: int) -> None:
            for _ in range(20):
                await long_step(number)
                seen.append("batch")

        async def answer(number: int) -> None:
            await long_step()
            seen.append(f"answer {number}")

        await asyncio.gather(
            *(batch(number) for number in range(4)), *(answer(number) for number in range(5))
        )
        return seen

    seen = asyncio.run(act())
    places = [seen.index(f"answer {number}") for number in range(5)]
    assert places == [4, 8, 12, 16, 20]
    assert seen.count("batch") == 80


def test_turns_that_nobody_else_wants_are_those_of_batches() -> None:
    """Nobody waits for a turn that is kept for others, nor for one of those who gave up."""

    async def act() -> list[str]:
        seen: list[str] = []

        async def long(name: str, batch: int | None = None) -> None:
            await long_step(batch)
            seen.append(name)

        gone = asyncio.create_task(long("gone"))
        tasks = [asyncio.create_task(long(f"batch {n}", n)) for n in range(9)]
        await asyncio.sleep(0)
        gone.cancel()
        async with asyncio.timeout(HANGS_S):
            await asyncio.gather(gone, *tasks, return_exceptions=True)
            await long("last")
        return seen

    assert asyncio.run(act())[-10:] == [*(f"batch {n}" for n in range(9)), "last"]
