"""The recorded events and what was decided for each, one column per field.

An event is known by its handle, a small int given in order of arrival. Columns of plain ints make
a history cheap to load and cheap to hold; everything else in the package passes handles around.
Owns the facts and the recorded effects. Must not decide anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

# What happens first at one instant: an expiry, then adds, then refunds, then charges.
EXPIRY, ADD, REFUND, CHARGE = 0, 1, 2, 3
RANKS = 4

#: The link of a refund whose charge has not arrived.
WAITING = -1


#: Events ranked in one go, so that runs without grants are passed over whole.
RANKED_AT_ONCE = 4096


class Grant(NamedTuple):
    """What an order of consumption may look at; the window is `start <= time < expiry`."""

    name: str
    amount: int
    start: int
    expiry: int


Order = Callable[[Grant], tuple[int, ...]]


def soonest_expiry(grant: Grant) -> tuple[int, ...]:
    """Consume what expires first, then what started first."""
    return (grant.expiry, grant.start)


def key_of(time: int, rank: int) -> int:
    """The position of an event in time; equal keys are ordered by arrival."""
    return time * RANKS + rank


class Events:
    """Facts and effects of every event, by handle.

    Effects mean, by kind: a grant's `rests` is what it lost to debt at once; a charge's `pieces`
    are (grant, taken, grant, taken, ...) and `rests` what was not covered; a refund's `pieces` are
    (grant, returned, ...) and `rests` what was lost. A grant not yet decided rests whole, so that
    applying or reverting it changes nothing.
    """

    __slots__ = (
        "amounts",
        "entries",
        "keys",
        "kinds",
        "links",
        "lost",
        "names",
        "offsets",
        "order",
        "pieces",
        "refunds",
        "rests",
    )

    def __init__(self, order: Order) -> None:
        self.order = order
        self.kinds = bytearray()
        self.keys: list[int] = []
        self.amounts: list[int] = []
        self.names: list[str | None] = []
        #: A grant's expiry, or a refund's charge.
        self.links: list[int] = []
        #: A grant's place in the order of consumption; ends with its handle.
        self.entries: list[tuple[int, ...]] = []
        self.pieces: list[tuple[int, ...]] = []
        self.rests: list[int] = []
        #: What a grant still held when it expired, where that was not zero.
        self.lost: dict[int, int] = {}
        #: How much of the charge was refunded before this refund.
        self.offsets: dict[int, int] = {}
        #: The refunds of a charge, in their order in time.
        self.refunds: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def record(self, kind: int, name: str | None, amount: int, time: int, link: int) -> int:
        """Store one event's facts and return its handle."""
        handle = len(self.keys)
        if len(self.entries) != handle:
            self.complete()
        entry: tuple[int, ...] = ()
        if kind == ADD:
            entry = (*self.order(Grant(name or "", amount, time, link)), handle)
        self.kinds.append(kind)
        self.keys.append(time * RANKS + kind)
        self.amounts.append(amount)
        self.names.append(name)
        self.links.append(link)
        self.pieces.append(())
        self.rests.append(amount if kind == ADD else 0)
        self.entries.append(entry)
        return handle

    def extend(
        self,
        kind: int,
        names: list[str | None],
        amounts: list[int],
        times: list[int],
        links: list[int],
    ) -> range:
        """Store many events of one kind, as `record` would one by one; `complete` is due."""
        first = len(self.keys)
        handles = range(first, first + len(times))
        self.kinds.extend(bytes([kind]) * len(times))
        self.keys.extend([time * RANKS + kind for time in times])
        self.amounts.extend(amounts)
        self.names.extend(names)
        self.links.extend(links)
        self.pieces.extend([()] * len(times))
        self.rests.extend(amounts if kind == ADD else [0] * len(times))
        return handles

    def complete(self) -> None:
        """Derive what `extend` left out: places in the order of consumption, ties of refunds."""
        refunds: list[int] = []
        for first in range(len(self.entries), len(self.keys), RANKED_AT_ONCE):
            handles = range(first, min(first + RANKED_AT_ONCE, len(self.keys)))
            self._rank(handles)
            refunds += [h for h in handles if self.kinds[h] == REFUND and self.links[h] != WAITING]
        self._link_all(refunds)

    def _rank(self, handles: range) -> None:
        if not self.kinds.count(ADD, handles.start, handles.stop):
            self.entries.extend([()] * len(handles))
            return
        keys, links, kinds = self.keys, self.links, self.kinds
        if self.order is soonest_expiry:
            self.entries.extend(
                (links[handle], keys[handle] // RANKS, handle) if kinds[handle] == ADD else ()
                for handle in handles
            )
            return
        for handle in handles:
            entry: tuple[int, ...] = ()
            if kinds[handle] == ADD:
                name, amount = self.names[handle], self.amounts[handle]
                grant = Grant(name or "", amount, self.time_of(handle), links[handle])
                entry = (*self.order(grant), handle)
            self.entries.append(entry)

    def time_of(self, handle: int) -> int:
        """When the event was said to happen."""
        return self.keys[handle] // RANKS

    def has_window(self, grant: int) -> bool:
        """Whether the grant is ever active."""
        return self.links[grant] * RANKS > self.keys[grant]

    def place_of(self, handle: int) -> int:
        """Where the event is placed in time: a refund is never before its charge."""
        if self.kinds[handle] != REFUND:
            return self.keys[handle]
        return max(self.keys[handle], self.keys[self.links[handle]])

    def is_glued(self, handle: int) -> bool:
        """Whether the event is a refund that has to follow its charge at once."""
        return self.kinds[handle] == REFUND and self.keys[handle] < self.keys[self.links[handle]]

    def first_overdrawn(self, refunds: range) -> int | None:
        """A charge that these refunds, which `extend` stored, give back more than it took."""
        links, amounts = self.links, self.amounts
        totals: dict[int, int] = {}
        for refund in refunds:
            charge = links[refund]
            totals[charge] = totals.get(charge, 0) + amounts[refund]
        return next((charge for charge in totals if totals[charge] > amounts[charge]), None)

    def _link_all(self, refunds: list[int]) -> None:
        """Tie refunds that `extend` stored to their charges, which have no others."""
        for refund in refunds:
            self.refunds.setdefault(self.links[refund], []).append(refund)
        for refund in refunds:
            siblings = self.refunds[self.links[refund]]
            if siblings[-1] != refund:
                continue
            siblings.sort(key=self.place_of)
            offset = 0
            for sibling in siblings:
                self.offsets[sibling] = offset
                offset += self.amounts[sibling]

    def link_refund(self, refund: int, charge: int) -> list[int]:
        """Tie a refund to its charge; return the charge's later refunds, whose offsets moved."""
        self.links[refund] = charge
        siblings = self.refunds.setdefault(charge, [])
        place = self.place_of(refund)
        index = len(siblings)
        while index and self.place_of(siblings[index - 1]) > place:
            index -= 1
        siblings.insert(index, refund)
        offset = 0
        if index:
            previous = siblings[index - 1]
            offset = self.offsets[previous] + self.amounts[previous]
        for sibling in siblings[index:]:
            self.offsets[sibling] = offset
            offset += self.amounts[sibling]
        return siblings[index + 1 :]
