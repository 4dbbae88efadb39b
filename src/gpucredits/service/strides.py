"""Long steps of work: one in each round of the event loop, so that a short one waits for one only.

Owns: whose long step is next: that of a batch under way, which others wait for, and otherwise that
of whoever asked first. Of some rounds one is for these, who would wait for ever behind batches
without end.
Must not: know what a step does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

OTHERS_EVERY = 4  # of so many rounds one is for those who are not urgent


class Strides:
    """The long steps of one event loop."""

    def __init__(self) -> None:
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False
        self._rounds = 0

    async def next(self, *, urgent: bool) -> None:
        """Wait for a round that has no long step yet."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._pass_on)
            return
        turn: asyncio.Future[None] = loop.create_future()
        (self._urgent if urgent else self._waiting).append(turn)
        await turn

    def _pass_on(self) -> None:
        """A round has gone by: the next one is for whoever waits first and still does."""
        self._rounds += 1
        first, second = self._urgent, self._waiting
        if self._rounds % OTHERS_EVERY == 0:
            first, second = second, first
        while queue := first or second:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._pass_on)
                return
        self._is_taken = False


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Strides] = WeakKeyDictionary()


async def stride(*, urgent: bool = False) -> None:
    """Wait until this task may take a long step: about a millisecond without letting others go.

    ``urgent``: others wait for what it is at work on, so it goes before those that begin.
    """
    loop = asyncio.get_running_loop()
    strides = _OF_LOOPS.get(loop)
    if strides is None:
        strides = _OF_LOOPS[loop] = Strides()
    await strides.next(urgent=urgent)
