"""Turns at the event loop: long steps of work run one at a time, a few rounds apart.

A round of the event loop runs every callback that is ready. With twenty long steps in each round, a
short request would wait for twenty of them in each of the six or so rounds that it needs.

Owns: which long step runs next. The batch that began first goes first, so that the database has
work while the next batch is decided. Every fourth step goes to tasks that belong to no batch, so
that a stream of batches cannot starve them.
Must not: know what a step does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush
from itertools import count
from weakref import WeakKeyDictionary

OTHERS_EVERY = 4  # one step in so many goes to tasks that belong to no batch
REST_ROUNDS = 3  # between two long steps: about as many as a short request needs

Turn = asyncio.Future[None]


class LoopTurns:
    """The long steps that wait for one event loop."""

    def __init__(self) -> None:
        self._batches: list[tuple[int, int, Turn]] = []  # a heap
        self._others: deque[Turn] = deque()
        self._numbers = count()
        self._is_taken = False
        self._steps = 0
        self._rests = 0

    async def next(self, batch: int | None) -> None:
        """Wait until the step of this task is next."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            self._rests = REST_ROUNDS
            loop.call_soon(self._pass_on)
            return
        turn: Turn = loop.create_future()
        if batch is None:
            self._others.append(turn)
        else:
            heappush(self._batches, (batch, next(self._numbers), turn))
        await turn

    def _pass_on(self) -> None:
        """Count a round of the loop; after the last round of rest, start the next step."""
        if self._rests:
            self._rests -= 1
        else:
            turn = self._next_turn()
            if turn is None:
                self._is_taken = False
                return
            turn.set_result(None)
            self._rests = REST_ROUNDS
        asyncio.get_running_loop().call_soon(self._pass_on)

    def _next_turn(self) -> Turn | None:
        """The next step whose task still waits."""
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


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = WeakKeyDictionary()


async def long_step(batch: int | None = None) -> None:
    """Wait until this task may take a long step: about a millisecond without an ``await``.

    ``batch`` is the number of the batch that the step belongs to. Steps of earlier batches go
    first, and steps of any batch before steps of none.
    """
    loop = asyncio.get_running_loop()
    turns = _TURNS.get(loop)
    if turns is None:
        turns = _TURNS[loop] = LoopTurns()
    await turns.next(batch)
