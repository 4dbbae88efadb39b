"""Every event in order of time, in blocks, with the balance after each and checkpoints between.

Blocks keep insertion cheap: an event is inserted into one short list, never into one of all events.
A checkpoint is what each live grant held just before a block. Checkpoints are at least as many
events apart as they have cells, so that they take no more memory than the events themselves.
Owns positions. Must not decide what an event does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from gpucredits.library.timeline.pool import Pool

#: Events in a block when it is filled in order; twice as many and it is split.
BLOCK = 1024

#: The `windows` of an event that has been placed and not yet decided; equals no real count.
UNDECIDED = -1

Position = tuple[int, int]


class Block:
    """A run of events in order; the four lists are parallel."""

    __slots__ = ("balances", "checkpoint", "events", "keys", "windows")

    def __init__(self, keys: list[int], events: list[int]) -> None:
        self.keys = keys
        self.events = events
        self.balances = [0] * len(keys)
        self.windows = [UNDECIDED] * len(keys)
        self.checkpoint: dict[int, int] | None = None

    def split(self) -> Block:
        """Cut the block in two and return the second half, which has no checkpoint."""
        middle = len(self.keys) // 2
        second = Block(self.keys[middle:], self.events[middle:])
        second.balances = self.balances[middle:]
        second.windows = self.windows[middle:]
        for column in (self.keys, self.events, self.balances, self.windows):
            del column[middle:]
        return second


class Log:
    """The blocks, and the first key of each for bisection."""

    __slots__ = ("_firsts", "blocks")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._firsts: list[int] = []

    def __len__(self) -> int:
        return sum(len(block.keys) for block in self.blocks)

    @property
    def last_key(self) -> int | None:
        """The key of the last event, or None when there is none."""
        return self.blocks[-1].keys[-1] if self.blocks else None

    @property
    def checkpoint_cells(self) -> int:
        """How many (grant, remaining) pairs all checkpoints hold together."""
        return sum(len(block.checkpoint or ()) for block in self.blocks)

    def read(self, key: int) -> tuple[int, int]:
        """Balance and windows after the last event at or before a key."""
        index = bisect_right(self._firsts, key) - 1
        if index < 0:
            return 0, 0
        block = self.blocks[index]
        offset = bisect_right(block.keys, key) - 1
        return block.balances[offset], block.windows[offset]

    def append(self, key: int, event: int, pool: Pool) -> None:
        """Decide an event at the end and place it there; the pool is the state at the end."""
        if not self.blocks or len(self.blocks[-1].keys) >= BLOCK:
            self.blocks.append(Block([], []))
            self._firsts.append(key)
            self.checkpoint(len(self.blocks) - 1, pool)
        block = self.blocks[-1]
        pool.decide(event)
        block.keys.append(key)
        block.events.append(event)
        block.balances.append(pool.balance)
        block.windows.append(pool.windows)

    def insert(self, key: int, event: int) -> None:
        """Place an undecided event among those of the same key, by arrival."""
        if not self.blocks:
            self.blocks.append(Block([], []))
            self._firsts.append(key)
        index = max(0, bisect_right(self._firsts, key) - 1)
        offset = bisect_right(self.blocks[index].keys, key)
        while event >= 0:
            previous = self._stepped_back((index, offset))
            block = self.blocks[previous[0]]
            if previous == (index, offset) or block.keys[previous[1]] != key:
                break
            if block.events[previous[1]] < event:
                break
            index, offset = previous
        self.insert_at((index, offset), key, event)

    def _stepped_back(self, position: Position) -> Position:
        """The position one event earlier, or the same at the beginning."""
        index, offset = position
        if offset:
            return index, offset - 1
        if index:
            return index - 1, len(self.blocks[index - 1].keys) - 1
        return position

    def insert_at(self, position: Position, key: int, event: int) -> None:
        """Place an undecided event at a position, splitting its block when it grows too long."""
        index, offset = position
        block = self.blocks[index]
        block.keys.insert(offset, key)
        block.events.insert(offset, event)
        block.balances.insert(offset, 0)
        block.windows.insert(offset, UNDECIDED)
        self._firsts[index] = block.keys[0]
        if len(block.keys) >= 2 * BLOCK:
            second = block.split()
            self.blocks.insert(index + 1, second)
            self._firsts.insert(index + 1, second.keys[0])

    def replace(self, keys: list[int], events: list[int]) -> None:
        """Forget everything and place these undecided events, which are in order."""
        cuts = range(0, len(keys), BLOCK)
        self.blocks = [Block(keys[cut : cut + BLOCK], events[cut : cut + BLOCK]) for cut in cuts]
        self._firsts = [block.keys[0] for block in self.blocks]

    def find(self, key: int, event: int) -> Position:
        """Where an event is, given the key it was placed with."""
        return self.find_any(key, {event})

    def find_any(self, key: int, events: set[int]) -> Position:
        """Where the first of some events is, given the key it was placed with."""
        index = max(0, bisect_left(self._firsts, key) - 1)
        offset = bisect_left(self.blocks[index].keys, key)
        while True:
            block = self.blocks[index]
            for place in range(offset, len(block.events)):
                if block.events[place] in events:
                    return index, place
            index, offset = index + 1, 0

    def before(self, position: Position) -> tuple[int, int]:
        """Balance and windows just before a position."""
        index, offset = position
        if offset == 0:
            if index == 0:
                return 0, 0
            index -= 1
            offset = len(self.blocks[index].keys)
        block = self.blocks[index]
        return block.balances[offset - 1], block.windows[offset - 1]

    def end(self) -> Position:
        """The position after the last event."""
        if not self.blocks:
            return 0, 0
        return len(self.blocks) - 1, len(self.blocks[-1].keys)

    def distance(self, start: Position, stop: Position) -> int:
        """How many events lie between two positions."""
        between = self.blocks[start[0] : stop[0]]
        return sum(len(block.keys) for block in between) + stop[1] - start[1]

    def checkpoint_before(self, position: Position) -> int:
        """The last block at or before a position that has a checkpoint; the first needs none."""
        index = position[0]
        while index and self.blocks[index].checkpoint is None:
            index -= 1
        return index

    def checkpoint(self, index: int, pool: Pool) -> None:
        """Copy the state just before a block, if the events since the last copy pay for it."""
        if index and self._room(index) >= max(BLOCK, pool.live):
            self.blocks[index].checkpoint = pool.copy_remaining()
            self._drop_crowded(index + 1)

    def _drop_crowded(self, index: int) -> None:
        """Drop the next checkpoint from a block on, if the events before it no longer pay."""
        for later in range(index, len(self.blocks)):
            cells = self.blocks[later].checkpoint
            if cells is not None:
                if len(cells) > self._room(later):
                    self.blocks[later].checkpoint = None
                return

    def patch(self, index: int, difference: dict[int, int]) -> None:
        """Correct a block's checkpoint by what changed; drop it if it has grown too large."""
        block = self.blocks[index]
        if block.checkpoint is None:
            return
        for grant, change in difference.items():
            left = block.checkpoint.get(grant, 0) + change
            if left:
                block.checkpoint[grant] = left
            else:
                block.checkpoint.pop(grant, None)
        if len(block.checkpoint) > self._room(index):
            block.checkpoint = None

    def _room(self, index: int) -> int:
        """How many events there are between the previous checkpoint and a block."""
        events = 0
        for block in reversed(self.blocks[:index]):
            events += len(block.keys)
            if block.checkpoint is not None:
                break
        return events
