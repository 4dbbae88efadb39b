"""Long steps of work: one in each round of the event loop, so that a short one waits for one only.

Owns: whose long step is next, which is that of whoever asked first.
Must not: know what a step does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary


class Strides:
    """The long steps of one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    async def next(self) -> None:
        """Wait for a round that has no long step yet."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._pass_on)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _pass_on(self) -> None:
        """A round has gone by: the next one is for whoever waits first and still does."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._pass_on)
                return
        self._is_taken = False


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Strides] = WeakKeyDictionary()


async def stride() -> None:
    """Wait until this task may take a long step: about a millisecond without letting others go."""
    loop = asyncio.get_running_loop()
    strides = _OF_LOOPS.get(loop)
    if strides is None:
        strides = _OF_LOOPS[loop] = Strides()
    await strides.next()
