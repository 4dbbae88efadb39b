"""A timeout that runs only while this process could have heard the answer.

Owns: counting time in small steps; each step counts once, however late it comes. If the event loop
was busy for a second, only one step has passed: an answer that waited in the socket meanwhile is no
outage of its sender.
Must not: know what is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

STEPS: Final = 25


@asynccontextmanager
async def patient_timeout(timeout_s: float) -> AsyncIterator[None]:
    """Raise ``TimeoutError`` after so long, not counting what the loop itself was late."""
    loop = asyncio.get_running_loop()
    step_s = timeout_s / STEPS
    left = STEPS
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as bound:

        def step() -> None:
            nonlocal left, timer
            left -= 1
            if left:
                timer = loop.call_later(step_s, step)
            else:
                bound.reschedule(loop.time())

        timer = loop.call_later(step_s, step)
        try:
            yield
        finally:
            timer.cancel()
