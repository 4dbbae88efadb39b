"""The expiries that lie beyond the last event: what is still there at a later time.

Only expiries happen after the last event, so a question about a later time is the state at the end
less what has expired by then. Owns the heap of those expiries. Must not move the state.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush
from itertools import accumulate

#: Expiries that a question may walk past before they are sorted once for all questions.
WALK_MAX = 64


class Future:
    """Grants by expiry; the sorted form is built on demand and dropped at the next write."""

    __slots__ = ("_heap", "_lost", "_times")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._times: list[int] | None = None
        self._lost: list[int] = []

    def push(self, expiry: int, grant: int) -> None:
        """Note that a grant ends after the last event."""
        heappush(self._heap, (expiry, grant))

    def pop_until(self, time: int) -> list[tuple[int, int]]:
        """Take out the expiries at or before a time, in order."""
        due = []
        while self._heap and self._heap[0][0] <= time:
            due.append(heappop(self._heap))
        return due

    def take_all(self) -> list[tuple[int, int]]:
        """Take out every expiry, in no order."""
        taken, self._heap = self._heap, []
        return taken

    def fill(self, expiries: list[tuple[int, int]]) -> None:
        """Replace what is held."""
        self._heap = expiries
        heapify(self._heap)

    def forget(self) -> None:
        """Drop what was derived from the state at the end, because that state changed."""
        self._times = None

    def ended(self, time: int, remaining: dict[int, int]) -> tuple[int, int]:
        """Credits and windows that end after the last event and by a time."""
        if self._times is None:
            walked = self._walk(time, remaining)
            if walked is not None:
                return walked
            ordered = sorted(self._heap)
            self._times = [expiry for expiry, _ in ordered]
            self._lost = list(
                accumulate((remaining.get(grant, 0) for _, grant in ordered), initial=0)
            )
        count = bisect_right(self._times, time)
        return self._lost[count], count

    def _walk(self, time: int, remaining: dict[int, int]) -> tuple[int, int] | None:
        """Visit only the part of the heap that ends by a time; None if that is too much."""
        heap = self._heap
        lost = count = 0
        ahead = [0]
        while ahead:
            index = ahead.pop()
            if index < len(heap) and heap[index][0] <= time:
                count += 1
                if count > WALK_MAX:
                    return None
                lost += remaining.get(heap[index][1], 0)
                ahead += (2 * index + 1, 2 * index + 2)
        return lost, count
