"""Long steps of work: one in a few rounds of the event loop, so that short ones hardly wait.

Owns: whose long step is next: that of the batch which began first, so that the database has
something to do while the next one is decided, and otherwise that of whoever asked first. Of some
steps one is for these, who would wait for ever behind batches without end.
Must not: know what a step does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush
from itertools import count
from weakref import WeakKeyDictionary

OTHERS_EVERY = 4  # of so many steps one is for those that no batch waits for
RESTS = 3  # rounds between two steps: about as many as a short request needs to get on its way

Turn = asyncio.Future[None]


class Strides:
    """The long steps of one event loop."""

    def __init__(self) -> None:
        self._batches: list[tuple[int, int, Turn]] = []  # a heap
        self._others: deque[Turn] = deque()
        self._numbers = count()
        self._is_taken = False
        self._steps = 0
        self._rests = 0

    async def next(self, batch: int | None) -> None:
        """Wait for a round that is for this step."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            self._rests = RESTS
            loop.call_soon(self._pass_on)
            return
        turn: Turn = loop.create_future()
        if batch is None:
            self._others.append(turn)
        else:
            heappush(self._batches, (batch, next(self._numbers), turn))
        await turn

    def _pass_on(self) -> None:
        """A round has gone by: after some of them it is the turn of whoever is next."""
        if self._rests:
            self._rests -= 1
        else:
            turn = self._next_turn()
            if turn is None:
                self._is_taken = False
                return
            turn.set_result(None)
            self._rests = RESTS
        asyncio.get_running_loop().call_soon(self._pass_on)

    def _next_turn(self) -> Turn | None:
        """Who is next and still waits."""
        self._steps += 1
        is_for_others = self._steps % OTHERS_EVERY == 0
        while self._batches or self._others:
            if self._others and (is_for_others or not self._batches):
                turn = self._others.popleft()
            else:
                turn = heappop(self._batches)[-1]
            if not turn.done():
                return turn
        return None


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Strides] = WeakKeyDictionary()


async def long_step(batch: int | None = None) -> None:
    """Wait until this task may take a long step: about a millisecond without letting others go.

    ``batch`` is the number of the batch that it is a step of: earlier ones go first, and all of
    them before those that are of none.
    """
    loop = asyncio.get_running_loop()
    strides = _OF_LOOPS.get(loop)
    if strides is None:
        strides = _OF_LOOPS[loop] = Strides()
    await strides.next(batch)
