"""Whole histories at once: lists of events and questions in, lists of answers out.

Owns the tuple shapes of the batch functions. Must not hold rules of its own; the engine has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from gpucredits.library.arguments import (
    ArgumentTypeError,
    ArgumentValueError,
    check_amount,
    check_integer,
    check_name,
)
from gpucredits.library.timeline.engine import Timeline, Window
from gpucredits.library.timeline.event import ADD, CHARGE

#: ("add", amount, timestamp, duration) or ("sub", amount, timestamp).
Event = tuple[str, int, int, int] | tuple[str, int, int]
#: ("add", grant_id, amount, timestamp, duration) or ("sub", amount, timestamp).
NamedEvent = tuple[str, str, int, int, int] | tuple[str, int, int]
#: (timestamp, amount, [(grant_id, taken), ...], uncovered).
AuditRow = tuple[int, int, list[tuple[str, int]], int]


def active_credits(add_events: Sequence[tuple[int, int, int]], queries: Sequence[int]) -> list[int]:
    """Sum the grants active at each query; an event is (amount, timestamp, duration)."""
    batch = _Batch("add_events")
    for event in add_events:
        batch.add("", event, "(amount, timestamp, duration)")
    return [balance for balance, _ in _states(batch.timeline(), queries)]


def balances(events: Sequence[Event], queries: Sequence[int]) -> list[int | None]:
    """Balance at each query after charges; None in debt or where no grant is active."""
    batch = _Batch("events")
    for event in events:
        if batch.is_add(event):
            batch.add("", event[1:], "('add', amount, timestamp, duration)")
        else:
            batch.charge(event[1:])
    return [
        balance if windows and balance >= 0 else None
        for balance, windows in _states(batch.timeline(), queries)
    ]


def audit_trail(events: Sequence[NamedEvent]) -> list[AuditRow]:
    """Which grants each charge consumed, one row per charge in order of time."""
    batch = _Batch("events")
    for event in events:
        if batch.is_add(event):
            name = check_name("events", event[1])
            batch.add(name, event[2:], "('add', grant_id, amount, timestamp, duration)")
        else:
            batch.charge(event[1:])
    rows = batch.timeline().consumptions()
    return [(row.timestamp, row.amount, row.taken, row.uncovered) for row in rows]


def _states(timeline: Timeline, queries: Sequence[int]) -> list[tuple[int, int]]:
    """Ask in order of time, which keeps to one part of memory, and answer in order of asking."""
    times = [check_integer("queries", time) for time in queries]
    answers = [(0, 0)] * len(times)
    for place in sorted(range(len(times)), key=times.__getitem__):
        answers[place] = timeline.state(times[place])
    return answers


class _Batch:
    """Checked events by column, for one sweep; inclusive windows, shortage is debt."""

    def __init__(self, argument: str) -> None:
        self._argument = argument
        self._grants: list[tuple[int, int, int, str]] = []
        self._charges: list[tuple[int, int]] = []

    def is_add(self, event: Sequence[object]) -> bool:
        if not isinstance(event, (tuple, list)) or not event:
            raise ArgumentTypeError(self._argument, f"each must be a tuple, not {event!r}")
        if event[0] not in ("add", "sub"):
            raise ArgumentValueError(
                self._argument, f"each must begin with 'add' or 'sub', not {event[0]!r}"
            )
        return bool(event[0] == "add")

    def add(self, name: str, fields: Sequence[object], shape: str) -> None:
        argument = self._argument
        if len(fields) != 3:
            raise ArgumentValueError(argument, f"{fields!r} does not have the shape {shape}")
        start = check_integer(argument, fields[1])
        amount = check_amount(argument, fields[0])
        self._grants.append((start, amount, start + check_amount(argument, fields[2]), name))

    def charge(self, fields: Sequence[object]) -> None:
        argument = self._argument
        if len(fields) != 2:
            shape = "('sub', amount, timestamp)"
            raise ArgumentValueError(argument, f"{fields!r} does not have the shape {shape}")
        amount = check_amount(argument, fields[0])
        self._charges.append((check_integer(argument, fields[1]), amount))

    def timeline(self) -> Timeline:
        """Load in order of time; events at one time keep their order of arrival."""
        timeline = Timeline(window=Window.INCLUSIVE)
        grants = sorted(self._grants, key=itemgetter(0))
        charges = sorted(self._charges, key=itemgetter(0))
        timeline.load(
            ADD,
            [name for _, _, _, name in grants],
            [amount for _, amount, _, _ in grants],
            [start for start, _, _, _ in grants],
            [end for _, _, end, _ in grants],
        )
        timeline.load(
            CHARGE,
            [None] * len(charges),
            [amount for _, amount in charges],
            [time for time, _ in charges],
            [0] * len(charges),
        )
        return timeline
