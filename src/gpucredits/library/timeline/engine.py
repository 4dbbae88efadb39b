"""The engine: a history of grants, charges and refunds that may arrive in any order.

Writes are cheap: an event at the end is decided at once, a late one waits until a question needs
it. Questions about a settled history are two bisections. Owns the rules that need the whole history
(charge names, refund totals) and when to settle. Must not read a clock, do I/O or be random.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from gpucredits.library.arguments import ArgumentValueError
from gpucredits.library.timeline.event import (
    ADD,
    CHARGE,
    EXPIRY,
    RANKS,
    REFUND,
    WAITING,
    Events,
    Order,
    key_of,
    soonest_expiry,
)
from gpucredits.library.timeline.future import Future
from gpucredits.library.timeline.log import Log
from gpucredits.library.timeline.pool import Pool, Shortage, Shortfalls
from gpucredits.library.timeline.rebuild import arranged, decide_all
from gpucredits.library.timeline.revision import Effort, Revision

#: Settle by sorting and deciding everything when at least this share of the events is waiting.
REBUILD_SHARE = 8


class Window(Enum):
    """Whether a grant is still active at the end it was given."""

    INCLUSIVE = "inclusive"
    HALF_OPEN = "half-open"


class Shortfall(NamedTuple):
    """A recorded charge that the grants active at its time cannot pay."""

    charge_name: str | None
    timestamp: int
    amount: int
    short_by: int


class Consumption(NamedTuple):
    """What one charge took: (grant name, credits) in order, and what nothing covered."""

    timestamp: int
    amount: int
    taken: list[tuple[str, int]]
    uncovered: int


class Timeline:
    """One history of credits.

    `window` says whether a grant's end belongs to it, `shortage` what an uncovered charge does,
    `order` which grant pays first (ties by arrival).
    """

    def __init__(
        self,
        *,
        window: Window = Window.HALF_OPEN,
        shortage: Shortage = Shortage.DEBT,
        order: Order = soonest_expiry,
    ) -> None:
        self._tail = 1 if window is Window.INCLUSIVE else 0
        self._events = Events(order)
        self._log = Log()
        self._future = Future()
        self._shortfalls = Shortfalls()
        self._pool = Pool(self._events, shortage, self._shortfalls, {})
        self._charges: dict[str | None, int] = {}
        self._waiting: dict[str, list[int]] = {}
        self._pending: list[int] = []
        self._pending_key = 0
        self._moved_refunds: list[int] = []
        self.effort = Effort()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def checkpoint_cells(self) -> int:
        """The memory that checkpoints take, in (grant, remaining) pairs."""
        return self._log.checkpoint_cells

    @property
    def events(self) -> Events:
        """The recorded events, to read."""
        return self._events

    def add(self, name: str, amount: int, start: int, end: int) -> None:
        """Record a grant that is active from `start` to `end`, by the window convention."""
        self._enter(self._events.record(ADD, name, amount, start, end + self._tail))

    def charge(self, name: str | None, amount: int, time: int) -> None:
        """Record a charge; a name makes it refundable, and refunds that wait for it join it."""
        waiting = self._check_charge(name, amount)
        charge = self._events.record(CHARGE, name, amount, time, 0)
        self._enter(charge)
        if name is not None:
            self._charges[name] = charge
            self._waiting.pop(name, None)
            for refund in waiting:
                self._join(refund, charge)

    def check_charge(self, name: str | None, amount: int) -> None:
        """Raise if a charge of this name and amount cannot be recorded."""
        self._check_charge(name, amount)

    def _check_charge(self, name: str | None, amount: int) -> list[int]:
        if name is None:
            return []
        if name in self._charges:
            raise ArgumentValueError("charge_id", f"{name!r} is already charged; use a new id")
        waiting = self._waiting.get(name, [])
        refunded = sum(self._events.amounts[refund] for refund in waiting)
        if refunded > amount:
            raise ArgumentValueError(
                "amount",
                f"refunds of {refunded} already wait for charge {name!r}; "
                f"it must be at least that, not {amount}",
            )
        return waiting

    def refund(self, charge_name: str, amount: int, time: int) -> None:
        """Record a refund of part or all of a charge, which may arrive later."""
        charge = self._charges.get(charge_name)
        if charge is None:
            refund = self._events.record(REFUND, charge_name, amount, time, WAITING)
            self._waiting.setdefault(charge_name, []).append(refund)
            return
        events = self._events
        events.complete()
        siblings = events.refunds.get(charge)
        refunded = events.offsets[siblings[-1]] + events.amounts[siblings[-1]] if siblings else 0
        left = events.amounts[charge] - refunded
        if amount > left:
            raise ArgumentValueError(
                "amount", f"charge {charge_name!r} has {left} left to refund, not {amount}"
            )
        self._join(events.record(REFUND, charge_name, amount, time, WAITING), charge)

    def _join(self, refund: int, charge: int) -> None:
        self._moved_refunds += self._events.link_refund(refund, charge)
        self._enter(refund)

    def has_waiting_refunds(self, name: str | None) -> bool:
        """Whether refunds wait for a charge of this name."""
        return name in self._waiting

    def load(
        self,
        kind: int,
        names: list[str | None],
        amounts: list[int],
        times: list[int],
        links: list[int],
    ) -> range:
        """Record many grants (links are ends), charges, or refunds (links are charges) at once.

        For an empty timeline: names are not compared with what is there. They settle in one sweep.
        """
        if kind == ADD and self._tail:
            links = [end + self._tail for end in links]
        handles = self._events.extend(kind, names, amounts, times, links)
        if not handles:
            return handles
        first = key_of(min(times), kind)
        self._pending_key = min(first, self._pending_key) if self._pending else first
        self._pending += handles
        if kind == CHARGE:
            self._charges.update(zip(names, handles, strict=True))
            self._charges.pop(None, None)
        elif kind == REFUND:
            charge = self._events.first_overdrawn(handles)
            if charge is not None:
                raise ArgumentValueError(
                    "amount", f"charge {self._events.names[charge]!r} is refunded beyond its amount"
                )
        return handles

    def balance(self, time: int) -> int:
        """Credits available at a time; below zero it is debt."""
        return self.state(time)[0]

    def state(self, time: int) -> tuple[int, int]:
        """Balance and number of active windows at a time, after all that happens at it."""
        key = time * RANKS + CHARGE
        if self._pending and key >= self._pending_key:
            self._settle()
        last_key = self._log.last_key
        if last_key is None or key < last_key:
            return self._log.read(key)
        pool = self._pool
        lost, ended = self._future.ended(time, pool.remaining)
        return pool.balance - lost, pool.windows - ended

    def first_shortfall(self, time: int) -> Shortfall | None:
        """The first charge at or before a time that cannot be paid, if charges may be refused."""
        key = time * RANKS + CHARGE
        if self._pending and key >= self._pending_key:
            self._settle()
        charge = self._shortfalls.first(key)
        if charge is None:
            return None
        events = self._events
        return Shortfall(
            events.names[charge],
            events.time_of(charge),
            events.amounts[charge],
            events.rests[charge],
        )

    def consumptions(self) -> list[Consumption]:
        """What every charge took, in order of time."""
        if self._pending:
            self._settle()
        events = self._events
        names = events.names
        rows = []
        for block in self._log.blocks:
            for event in block.events:
                if event >= 0 and events.kinds[event] == CHARGE:
                    pieces = events.pieces[event]
                    grants = [names[grant] or "" for grant in pieces[::2]]
                    taken = list(zip(grants, pieces[1::2], strict=True))
                    rows.append(
                        Consumption(
                            events.time_of(event), events.amounts[event], taken, events.rests[event]
                        )
                    )
        return rows

    def _enter(self, handle: int) -> None:
        """Decide an event at the end at once; leave any other for the next question."""
        key = self._events.place_of(handle)
        last_key = self._log.last_key
        is_at_end = last_key is None or key >= last_key
        if is_at_end and not self._pending and not self._events.is_glued(handle):
            self._append(handle)
            return
        self._pending_key = min(key, self._pending_key) if self._pending else key
        self._pending.append(handle)

    def _append(self, handle: int) -> None:
        """Decide an event at the end, after the expiries that come before it."""
        events = self._events
        key = events.place_of(handle)
        for expiry, grant in self._future.pop_until(key // RANKS):
            self._log.append(expiry * RANKS + EXPIRY, ~grant, self._pool)
        self._log.append(key, handle, self._pool)
        if events.kinds[handle] == ADD and events.has_window(handle):
            self._future.push(events.links[handle], handle)
        self._future.forget()
        self.effort.decided += 1

    def _settle(self) -> None:
        """Bring everything that waits into the log."""
        self._events.complete()
        pending, self._pending = self._pending, []
        moved, self._moved_refunds = self._moved_refunds, []
        if len(pending) * REBUILD_SHARE >= len(self._events):
            self._rebuild(pending)
            return
        last_key = self._log.last_key
        place_of = self._events.place_of
        late = [h for h in pending if last_key is not None and place_of(h) <= last_key]
        revision = Revision(self._events, self._log, self._pool, self.effort)
        for grant in revision.place(late):
            self._future.push(self._events.links[grant], grant)
        for refund in moved:
            revision.mark_refund(refund)
        revision.run()
        self._pool = revision.pool
        self._future.forget()
        ahead = [h for h in pending if last_key is None or place_of(h) > last_key]
        for handle in arranged(self._events, [], [], ahead)[1]:
            self._append(handle)

    def _rebuild(self, pending: list[int]) -> None:
        """Sort and decide the whole history; cheaper than many insertions."""
        self._pool = self._pool.restored({}, 0, 0)
        self.effort.decided += decide_all(
            self._events, self._log, self._future, self._pool, pending
        )
        self._future.forget()
