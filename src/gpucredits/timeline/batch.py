"""Whole histories at once: lists of events and questions in, lists of answers out.

Owns the tuple shapes of the batch functions. Must not hold rules of its own; the engine has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.arguments import (
    ArgumentTypeError,
    ArgumentValueError,
    check_amount,
    check_integer,
    check_name,
)
from gpucredits.timeline.engine import Timeline, Window
from gpucredits.timeline.event import ADD, CHARGE

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
    timeline = batch.timeline()
    return [timeline.balance(time) for time in _times(queries)]


def balances(events: Sequence[Event], queries: Sequence[int]) -> list[int | None]:
    """Balance at each query after charges; None in debt or where no grant is active."""
    batch = _Batch("events")
    for event in events:
        if batch.is_add(event):
            batch.add("", event[1:], "('add', amount, timestamp, duration)")
        else:
            batch.charge(event[1:])
    state = batch.timeline().state
    answers: list[int | None] = []
    for time in _times(queries):
        balance, windows = state(time)
        answers.append(balance if windows and balance >= 0 else None)
    return answers


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


def _times(queries: Sequence[int]) -> list[int]:
    return [check_integer("queries", time) for time in queries]


class _Batch:
    """Checked events by column, for one sweep; inclusive windows, shortage is debt."""

    def __init__(self, argument: str) -> None:
        self._argument = argument
        self._names: list[str | None] = []
        self._granted: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._charged: list[int] = []
        self._charge_times: list[int] = []

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
        self._granted.append(check_amount(argument, fields[0]))
        self._names.append(name)
        self._starts.append(start)
        self._ends.append(start + check_amount(argument, fields[2]))

    def charge(self, fields: Sequence[object]) -> None:
        argument = self._argument
        if len(fields) != 2:
            shape = "('sub', amount, timestamp)"
            raise ArgumentValueError(argument, f"{fields!r} does not have the shape {shape}")
        self._charged.append(check_amount(argument, fields[0]))
        self._charge_times.append(check_integer(argument, fields[1]))

    def timeline(self) -> Timeline:
        timeline = Timeline(window=Window.INCLUSIVE)
        timeline.load(ADD, self._names, self._granted, self._starts, self._ends)
        count = len(self._charged)
        timeline.load(CHARGE, [None] * count, self._charged, self._charge_times, [0] * count)
        return timeline
