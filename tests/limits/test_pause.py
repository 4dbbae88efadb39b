"""Who is turned away waits a little for the answer, unless too many do."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.api.http import throttle
from support.waiting import HANGS_S


def test_a_client_that_hammers_waits_for_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may wait do so; one more is told at once, and later ones wait again."""

    async def act() -> None:
        monkeypatch.setattr(throttle, "PAUSES", asyncio.Semaphore(2))
        monkeypatch.setattr(throttle, "PAUSE_S", 60.0)
        waiting = [asyncio.create_task(throttle.pause()) for _ in range(2)]
        await asyncio.sleep(0)
        async with asyncio.timeout(HANGS_S):
            await throttle.pause()
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
        await asyncio.wait([waiting[0]])
        later = asyncio.create_task(throttle.pause())
        await asyncio.sleep(0)
        assert not later.done()
        for task in (*waiting, later):
            task.cancel()

    asyncio.run(act())
