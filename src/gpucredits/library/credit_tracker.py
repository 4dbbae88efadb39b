"""CreditTracker: half-open windows, and charges that are refused when credits are short.

Owns the checks, the judging of a charge and the way to and from a dump. Must not hold rules about
who pays; the timeline has them.
"""

from __future__ import annotations

from typing import NoReturn

from gpucredits.library.arguments import (
    ArgumentTypeError,
    ArgumentValueError,
    check_amount,
    check_integer,
    check_name,
)
from gpucredits.library.dump import (
    Charges,
    DumpError,
    Grants,
    History,
    PendingRefunds,
    Refunds,
    read_history,
    write_history,
)
from gpucredits.library.timeline import Shortage, Shortfall, Timeline, Window
from gpucredits.library.timeline.event import ADD, CHARGE, REFUND


class IrreconcilableError(Exception):
    """A recorded charge that replay cannot fund; the first one is named."""

    def __init__(self, shortfall: Shortfall) -> None:
        charge_id, timestamp, amount, short_by = shortfall
        super().__init__(
            f"charge {charge_id!r} of {amount} at {timestamp} cannot be funded: short by {short_by}"
        )
        self.charge_id = charge_id
        self.timestamp = timestamp
        self.amount = amount
        self.short_by = short_by

    def __reduce__(self) -> tuple[type[IrreconcilableError], tuple[Shortfall]]:
        shortfall = Shortfall(self.charge_id, self.timestamp, self.amount, self.short_by)
        return type(self), (shortfall,)


class CreditTracker:
    """Grants, charges and refunds in any order of arrival, and balances at any time.

    A charge is judged against the events at or before it that are known when it is made. Two
    trackers are equal when their dumps are.
    """

    def __init__(self) -> None:
        self._timeline = Timeline(window=Window.HALF_OPEN, shortage=Shortage.REFUSE)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CreditTracker):
            return NotImplemented
        return self._history() == other._history()

    def __hash__(self) -> NoReturn:
        raise TypeError("a CreditTracker changes, so it has no hash")

    def add(self, grant_id: str, amount: int, start: int, expiration: int) -> None:
        """Record a grant that is valid on `[start, expiration)`.

        Two grants with one `grant_id` are two grants.
        """
        name = check_name("grant_id", grant_id)
        amount = check_amount("amount", amount)
        start = check_integer("start", start)
        expiration = check_integer("expiration", expiration)
        if expiration < start:
            raise ArgumentValueError(
                "expiration", f"must be at or after start {start}, not {expiration}"
            )
        self._timeline.add(name, amount, start, expiration)

    def charge(self, amount: int, timestamp: int, charge_id: str | None = None) -> int | None:
        """Charge at a timestamp: the balance left there, or None and nothing changed.

        Raises IrreconcilableError when the history up to the timestamp cannot be trusted.
        """
        amount = check_amount("amount", amount)
        timestamp = check_integer("timestamp", timestamp)
        name = None if charge_id is None else check_name("charge_id", charge_id)
        self._timeline.check_charge(name, amount)
        balance = self.get_balance(timestamp)
        if balance < amount:
            return None
        has_refunds = self._timeline.has_waiting_refunds(name)
        self._timeline.charge(name, amount, timestamp)
        return self.get_balance(timestamp) if has_refunds else balance - amount

    def refund(self, charge_id: str, amount: int, timestamp: int) -> None:
        """Give back part or all of a charge to the grants it came from, while they last.

        A refund may arrive before its charge, and then waits for it.
        """
        name = check_name("charge_id", charge_id)
        amount = check_amount("amount", amount)
        self._timeline.refund(name, amount, check_integer("timestamp", timestamp))

    def get_balance(self, timestamp: int) -> int:
        """Balance at a timestamp; 0 where nothing is active.

        Raises IrreconcilableError naming the first charge at or before it that cannot be funded.
        """
        timestamp = check_integer("timestamp", timestamp)
        shortfall = self._timeline.first_shortfall(timestamp)
        if shortfall is not None:
            raise IrreconcilableError(shortfall)
        return self._timeline.balance(timestamp)

    def dump(self) -> bytes:
        """The whole history as bytes; equal histories give equal bytes."""
        return write_history(self._history())

    @classmethod
    def load(cls, data: bytes) -> CreditTracker:
        """A tracker with the history that `dump` wrote; raises DumpError if it is damaged."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError("data", f"must be bytes, not {type(data).__name__}")
        history = read_history(bytes(data))
        tracker = cls()
        tracker._replace(history)
        return tracker

    def _replace(self, history: History) -> None:
        timeline = Timeline(window=Window.HALF_OPEN, shortage=Shortage.REFUSE)
        grants, charges = history.grants, history.charges
        timeline.load(ADD, grants.names, grants.amounts, grants.starts, grants.expirations)
        zeros = [0] * len(charges.times)
        rows = timeline.load(CHARGE, charges.names, charges.amounts, charges.times, zeros)
        refunds, waiting = history.refunds, history.waiting
        names = [charges.names[row] for row in refunds.charges]
        if None in names:
            raise DumpError("a refund names a charge without an id")
        targets = [rows.start + row for row in refunds.charges]
        try:
            timeline.load(REFUND, names, refunds.amounts, refunds.times, targets)
            for row in zip(waiting.names, waiting.amounts, waiting.times, strict=True):
                timeline.refund(row[0] or "", *row[1:])
        except ArgumentValueError as error:
            raise DumpError(f"refunds exceed their charge: {error}") from None
        self._timeline = timeline

    def _history(self) -> History:
        """The recorded events in canonical order, which arrival numbers do not enter."""
        events = self._timeline.events
        kinds, amounts, names, links = events.kinds, events.amounts, events.names, events.links
        handles = range(len(events))
        grants = sorted(
            (h for h in handles if kinds[h] == ADD), key=lambda h: (events.keys[h], links[h])
        )
        charges = sorted((h for h in handles if kinds[h] == CHARGE), key=events.keys.__getitem__)
        refunds = sorted(
            (h for h in handles if kinds[h] == REFUND),
            key=lambda h: (events.keys[h], names[h] or "", amounts[h]),
        )
        rows = {charge: row for row, charge in enumerate(charges)}
        joined = [h for h in refunds if links[h] in rows]
        waiting = [h for h in refunds if links[h] not in rows]
        time_of = events.time_of
        return History(
            Grants(
                [time_of(h) for h in grants],
                [links[h] for h in grants],
                [amounts[h] for h in grants],
                [names[h] for h in grants],
            ),
            Charges(
                [time_of(h) for h in charges],
                [amounts[h] for h in charges],
                [names[h] for h in charges],
            ),
            Refunds(
                [time_of(h) for h in joined],
                [amounts[h] for h in joined],
                [rows[links[h]] for h in joined],
            ),
            PendingRefunds(
                [time_of(h) for h in waiting],
                [amounts[h] for h in waiting],
                [names[h] for h in waiting],
            ),
        )
