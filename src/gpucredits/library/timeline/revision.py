"""Late events: place them, bring the state back to before the first, and decide anew from there.

A pass keeps the difference between the new state and the recorded one. When that is nothing and no
changed event is near, everything later is as recorded and the pass stops. Owns the walk over the
log. Must not decide what an event does; the pool does.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from gpucredits.library.timeline.event import ADD, CHARGE, EXPIRY, RANKS, Events
from gpucredits.library.timeline.log import Log, Position
from gpucredits.library.timeline.pool import Pool

#: Blocks to the next changed event that a pass walks rather than start again from a checkpoint.
NEAR_BLOCKS = 2


#: Checkpoint cells that can be copied in the time that one event takes.
CELLS_PER_EVENT = 4


@dataclass(slots=True)
class Effort:
    """How many events were walked, by the kind of walk; for measurements and tests."""

    decided: int = 0
    applied: int = 0
    reverted: int = 0


class Revision:
    """One settling of late events over a log whose end state is `pool`."""

    def __init__(self, events: Events, log: Log, pool: Pool, effort: Effort) -> None:
        self._events = events
        self._log = log
        self._last_key = log.last_key
        self._effort = effort
        self._difference: dict[int, int] = {}
        self._changed: set[int] = set()
        self._queue: list[tuple[int, int]] = []
        self.pool = pool

    def place(self, handles: list[int]) -> list[int]:
        """Put new events inside the log, expiries up to its end too; return grants ending later."""
        events, log = self._events, self._log
        ending_later = []
        for handle in handles:
            key = events.place_of(handle)
            if events.is_glued(handle):
                continue
            log.insert(key, handle)
            self.mark(key, handle)
            if events.kinds[handle] == ADD and events.has_window(handle):
                expiry = events.links[handle] * RANKS + EXPIRY
                if self._is_inside(expiry):
                    log.insert(expiry, ~handle)
                    self.mark(expiry, ~handle)
                else:
                    ending_later.append(handle)
        for handle in handles:
            if events.is_glued(handle):
                siblings = [events.links[handle], *events.refunds[events.links[handle]]]
                key = events.place_of(handle)
                index, offset = log.find(key, siblings[siblings.index(handle) - 1])
                log.insert_at((index, offset + 1), key, handle)
                self.mark(key, handle)
        return ending_later

    def mark(self, key: int, event: int) -> None:
        """Note that an event in the log has to be decided anew."""
        if event not in self._changed:
            self._changed.add(event)
            heappush(self._queue, (key, event))

    def mark_refund(self, refund: int) -> None:
        """Note that a refund has to be decided anew, unless it still lies beyond the log."""
        key = self._events.place_of(refund)
        if self._is_inside(key):
            self.mark(key, refund)

    def _is_inside(self, key: int) -> bool:
        return self._last_key is not None and key <= self._last_key

    def run(self) -> None:
        """Decide every marked event anew, and whatever follows from it."""
        position = self._next_changed()
        while position is not None:
            self._pass_from(position)
            position = self._next_changed()

    def _next_changed(self) -> Position | None:
        while self._queue:
            key, event = self._queue[0]
            if event in self._changed:
                return self._log.find_any(key, self._changed)
            heappop(self._queue)
        return None

    def _pass_from(self, start: Position) -> None:
        """Decide from a position until nothing differs; leave the end state in `pool`."""
        log = self._log
        pool, is_end_state_rewound = self._state_before(start)
        position: Position | None = start
        while position is not None:
            stopped = self._decide_from(pool, position)
            if stopped == log.end():
                self.pool = pool
                return
            position = self._next_changed()
            is_near = position is not None and position[0] - stopped[0] <= NEAR_BLOCKS
            if position is not None and (is_near or is_end_state_rewound):
                self._apply(pool, stopped, position)
            else:
                position = None
        if is_end_state_rewound:
            self._apply(pool, stopped, log.end())

    def _state_before(self, position: Position) -> tuple[Pool, bool]:
        """The state at a position: the end state rewound, or a checkpoint brought forward."""
        log, pool = self._log, self.pool
        index = log.checkpoint_before(position)
        cells = log.blocks[index].checkpoint or {}
        rewinding = 2 * log.distance(position, log.end())
        if rewinding <= len(cells) // CELLS_PER_EVENT + log.distance((index, 0), position):
            self._revert(pool, position)
            return pool, True
        balance, windows = log.before((index, 0))
        restored = pool.restored(cells, balance, windows)
        self._apply(restored, (index, 0), position)
        return restored, False

    def _revert(self, pool: Pool, stop: Position) -> None:
        log = self._log
        index, offset = stop
        for block in reversed(log.blocks[index + 1 :]):
            pool.revert(block.events)
        pool.revert(log.blocks[index].events[offset:])
        self._effort.reverted += log.distance(stop, log.end())
        pool.balance, pool.windows = log.before(stop)

    def _apply(self, pool: Pool, start: Position, stop: Position) -> None:
        """Bring a state forward by recorded effects, adding checkpoints where they are missing."""
        log = self._log
        index, offset = start
        while index <= stop[0]:
            block = log.blocks[index]
            if offset == 0 and block.checkpoint is None:
                log.checkpoint(index, pool)
            until = stop[1] if index == stop[0] else len(block.events)
            pool.apply(block.events[offset:until])
            index, offset = index + 1, 0
        self._effort.applied += log.distance(start, stop)
        pool.balance, pool.windows = log.before(stop)

    def _decide_from(self, pool: Pool, start: Position) -> Position:
        """Decide anew from a position; return where the state met what was recorded."""
        index, offset = start
        while index < len(self._log.blocks):
            if offset == 0:
                self._cross(index, pool)
            stopped = self._decide_block(pool, index, offset)
            if stopped is not None:
                return index, stopped
            index, offset = index + 1, 0
        return self._log.end()

    def _cross(self, index: int, pool: Pool) -> None:
        if self._log.blocks[index].checkpoint is None:
            self._log.checkpoint(index, pool)
        else:
            self._log.patch(index, self._difference)

    def _decide_block(self, pool: Pool, index: int, offset: int) -> int | None:
        """Decide the rest of one block; return the offset after which nothing differs."""
        block = self._log.blocks[index]
        events, balances, windows = block.events, block.balances, block.windows
        difference, changed = self._difference, self._changed
        for place in range(offset, len(events)):
            event = events[place]
            if event in changed:
                changed.discard(event)
            if event >= 0:
                self._decide(pool, event)
            else:
                pool.decide(event)
                difference.pop(~event, None)
            balance, active = pool.balance, pool.windows
            is_settled = not difference and balances[place] == balance and windows[place] == active
            balances[place] = balance
            windows[place] = active
            if is_settled and changed.isdisjoint(events[place + 1 : place + 2]):
                self._effort.decided += place + 1 - offset
                return place + 1
        self._effort.decided += len(events) - offset
        return None

    def _decide(self, pool: Pool, event: int) -> None:
        """Decide one event other than an expiry, and note what it does differently from before."""
        events = self._events
        pieces, rest = events.pieces[event], events.rests[event]
        pool.decide(event)
        if pieces != events.pieces[event] or rest != events.rests[event]:
            self._note(event, pieces, rest)

    def _note(self, event: int, pieces: tuple[int, ...], rest: int) -> None:
        events = self._events
        kind = events.kinds[event]
        if kind == ADD:
            self._differ(event, rest - events.rests[event])
            return
        sign = 1 if kind == CHARGE else -1
        self._differ_all(pieces, sign)
        self._differ_all(events.pieces[event], -sign)
        if kind == CHARGE:
            for refund in events.refunds.get(event, ()):
                self.mark_refund(refund)

    def _differ_all(self, pieces: tuple[int, ...], sign: int) -> None:
        for grant, amount in zip(pieces[::2], pieces[1::2], strict=True):
            self._differ(grant, sign * amount)

    def _differ(self, grant: int, change: int) -> None:
        total = self._difference.get(grant, 0) + change
        if total:
            self._difference[grant] = total
        else:
            self._difference.pop(grant, None)
