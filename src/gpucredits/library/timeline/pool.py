"""The state at one instant, and the rules that move it.

Owns what a grant, an expiry, a charge and a refund do: who pays, and who gets credits back. Must
not know where in the log an event sits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from enum import Enum
from heapq import heapify, heappop, heappush

from gpucredits.library.timeline.event import ADD, CHARGE, RANKS, Events

#: Spent entries that a pool may carry beyond its live ones before it is swept.
STALE_MAX = 1024


class Shortage(Enum):
    """What becomes of a charge that the active grants cannot cover."""

    #: Take what there is; the rest is debt, which later adds repay first.
    DEBT = "debt"
    #: Take nothing; the charge is a point that does not reconcile.
    REFUSE = "refuse"


class Shortfalls:
    """The charges that a refusing timeline could not fund, in order of time."""

    __slots__ = ("_sorted",)

    def __init__(self) -> None:
        self._sorted: list[tuple[int, int]] = []

    def set(self, key: int, charge: int) -> None:
        """Note that the charge at this key is not funded."""
        insort(self._sorted, (key, charge))

    def clear(self, key: int, charge: int) -> None:
        """Note that the charge at this key is funded after all."""
        del self._sorted[bisect_left(self._sorted, (key, charge))]

    def first(self, key: int) -> int | None:
        """The first unfunded charge at or before a key."""
        if self._sorted and self._sorted[0][0] <= key:
            return self._sorted[0][1]
        return None


class Pool:
    """Remaining credits per grant, the balance (below zero it is debt) and the active windows.

    A grant is in `remaining` exactly while its entry is in the heap; spent ones stay, at zero,
    until they surface or are swept.
    """

    __slots__ = (
        "_events",
        "_heap",
        "_shortage",
        "_shortfalls",
        "_stale",
        "balance",
        "remaining",
        "windows",
    )

    def __init__(
        self,
        events: Events,
        shortage: Shortage,
        shortfalls: Shortfalls,
        remaining: dict[int, int],
    ) -> None:
        self._events = events
        self._shortage = shortage
        self._shortfalls = shortfalls
        self._fill(remaining)
        self.balance = 0
        self.windows = 0

    @property
    def live(self) -> int:
        """How many grants still hold credits."""
        return len(self.remaining) - self._stale

    def copy_remaining(self) -> dict[int, int]:
        """What each live grant holds, for a checkpoint."""
        return {grant: left for grant, left in self.remaining.items() if left}

    def restored(self, remaining: dict[int, int], balance: int, windows: int) -> Pool:
        """A separate pool with the same rules and the given state."""
        pool = Pool(self._events, self._shortage, self._shortfalls, dict(remaining))
        pool.balance = balance
        pool.windows = windows
        return pool

    def _fill(self, remaining: dict[int, int]) -> None:
        entries = self._events.entries
        self.remaining = remaining
        self._heap: list[tuple[int, ...]] = [entries[grant] for grant in remaining]
        heapify(self._heap)
        self._stale = 0

    def decide(self, event: int) -> None:
        """Move past one event by the rules and record its effects; `~grant` is an expiry."""
        if event < 0:
            self._decide_expiry(~event)
            return
        kind = self._events.kinds[event]
        if kind == CHARGE:
            self._decide_charge(event)
        elif kind == ADD:
            self._decide_add(event)
        else:
            self._decide_refund(event)

    def decide_run(self, run: list[int]) -> tuple[list[int], list[int]]:
        """Move past events by the rules; return the balance and the windows after each."""
        kinds = self._events.kinds
        decide_add, decide_charge = self._decide_add, self._decide_charge
        balances: list[int] = []
        windows: list[int] = []
        for event in run:
            if event < 0:
                self._decide_expiry(~event)
            elif kinds[event] == ADD:
                decide_add(event)
            elif kinds[event] == CHARGE:
                decide_charge(event)
            else:
                self._decide_refund(event)
            balances.append(self.balance)
            windows.append(self.windows)
        return balances, windows

    def _decide_add(self, grant: int) -> None:
        events = self._events
        amount = events.amounts[grant]
        if events.links[grant] * RANKS <= events.keys[grant]:
            events.rests[grant] = amount  # the window is empty
            return
        balance = self.balance
        repaid = 0 if balance >= 0 else min(-balance, amount)
        events.rests[grant] = repaid
        if amount > repaid:
            if grant in self.remaining:
                self._put(grant, amount - repaid)
            else:
                self.remaining[grant] = amount - repaid
                heappush(self._heap, events.entries[grant])
        self.balance = balance + amount
        self.windows += 1

    def _decide_expiry(self, grant: int) -> None:
        left = self.remaining.get(grant, 0)
        if left:
            self.balance -= left
            self._events.lost[grant] = left
            self._spend(grant, left)
        else:
            self._events.lost.pop(grant, None)
        self.windows -= 1

    def _decide_charge(self, charge: int) -> None:
        events = self._events
        due = events.amounts[charge]
        if self._shortage is Shortage.REFUSE and not self._is_funded(charge, due):
            return
        self.balance -= due
        heap, remaining = self._heap, self.remaining
        if heap:
            grant = heap[0][-1]
            left = remaining[grant]
            if left > due:
                remaining[grant] = left - due
                events.pieces[charge] = (grant, due) if due else ()
                events.rests[charge] = 0
                return
        events.pieces[charge], events.rests[charge] = self._consume(due)

    def _consume(self, due: int) -> tuple[tuple[int, ...], int]:
        """Take credits from one grant after another; return the pieces and what is not covered."""
        heap, remaining = self._heap, self.remaining
        taken: list[int] = []
        while due and heap:
            grant = heap[0][-1]
            left = remaining[grant]
            if left > due:
                remaining[grant] = left - due
                taken += (grant, due)
                return tuple(taken), 0
            heappop(heap)
            del remaining[grant]
            if left:
                taken += (grant, left)
                due -= left
            else:
                self._stale -= 1
        return tuple(taken), due

    def _is_funded(self, charge: int, due: int) -> bool:
        """Whether a refusing timeline can pay the charge; keep the list of those it cannot."""
        events = self._events
        short = due - self.balance
        if short > 0:
            if not events.rests[charge]:
                self._shortfalls.set(events.keys[charge], charge)
            events.rests[charge] = short
            events.pieces[charge] = ()
            return False
        if events.rests[charge]:
            self._shortfalls.clear(events.keys[charge], charge)
        return True

    def _decide_refund(self, refund: int) -> None:
        events = self._events
        charge = events.links[refund]
        time = events.place_of(refund) // RANKS
        returned: list[int] = []
        lost = 0
        for grant, part in self._parts_refunded(refund, charge):
            debt = max(0, -self.balance)
            if grant is None:
                self.balance += min(debt, part)
                lost += max(0, part - debt)
            elif events.links[grant] > time:
                self.balance += part
                if part > debt:
                    self._put(grant, part - debt)
                    returned += (grant, part - debt)
            else:
                lost += part
        events.pieces[refund] = tuple(returned)
        events.rests[refund] = lost

    def _parts_refunded(self, refund: int, charge: int) -> list[tuple[int | None, int]]:
        """What the refund undoes, last consumed first: uncovered credits, then each grant's."""
        events = self._events
        uncovered, pieces = events.rests[charge], events.pieces[charge]
        if uncovered and self._shortage is Shortage.REFUSE:
            return []  # the charge took nothing
        parts: list[tuple[int | None, int]] = [(None, uncovered)]
        parts += zip(pieces[-2::-2], pieces[::-2], strict=True)
        skip, due = events.offsets[refund], events.amounts[refund]
        undone = []
        for grant, size in parts:
            part = min(due, max(0, size - skip))
            skip = max(0, skip - size)
            if part:
                undone.append((grant, part))
                due -= part
        return undone

    def apply(self, run: list[int]) -> None:
        """Move past events by their recorded effects; the caller sets balance and windows."""
        events = self._events
        kinds, pieces = events.kinds, events.pieces
        for event in run:
            if event < 0:
                left = self.remaining.get(~event, 0)
                if left:
                    self._spend(~event, left)
            elif kinds[event] == ADD:
                left = events.amounts[event] - events.rests[event]
                if left:
                    self._put(event, left)
            elif kinds[event] == CHARGE:
                self._spend_all(pieces[event])
            else:
                self._put_all(pieces[event])

    def revert(self, run: list[int]) -> None:
        """Move back before events, last first, by their recorded effects; likewise."""
        events, lost = self._events, self._events.lost
        kinds, pieces = events.kinds, events.pieces
        for event in reversed(run):
            if event < 0:
                left = lost.get(~event, 0)
                if left:
                    self._put(~event, left)
            elif kinds[event] == ADD:
                left = self.remaining.get(event, 0)
                if left:
                    self._spend(event, left)
            elif kinds[event] == CHARGE:
                self._put_all(pieces[event])
            else:
                self._spend_all(pieces[event])

    def _put(self, grant: int, amount: int) -> None:
        left = self.remaining.get(grant)
        if left is None:
            self.remaining[grant] = amount
            heappush(self._heap, self._events.entries[grant])
            return
        if not left:
            self._stale -= 1
        self.remaining[grant] = left + amount

    def _spend(self, grant: int, amount: int) -> None:
        left = self.remaining[grant] - amount
        self.remaining[grant] = left
        if not left:
            self._stale += 1
            if 2 * self._stale > STALE_MAX + len(self.remaining):
                self._fill(self.copy_remaining())

    def _put_all(self, pieces: tuple[int, ...]) -> None:
        if len(pieces) == 2:
            self._put(*pieces)
            return
        for grant, amount in zip(pieces[::2], pieces[1::2], strict=True):
            self._put(grant, amount)

    def _spend_all(self, pieces: tuple[int, ...]) -> None:
        if len(pieces) == 2:
            self._spend(*pieces)
            return
        for grant, amount in zip(pieces[::2], pieces[1::2], strict=True):
            self._spend(grant, amount)
