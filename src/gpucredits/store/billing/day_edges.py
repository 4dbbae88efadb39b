"""A time cut into whole days and what is left at its ends.

Owns: which entries correct the sums of days where a time begins or ends inside a day.
Must not: add anything up.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.bounds import DAY_US, HOUR_US
from gpucredits.store.database.connection import Connection

ENTRIES_AT = """
SELECT entry_at($1, at) FROM unnest($2::bigint[]) WITH ORDINALITY AS asked(at, place) ORDER BY place
"""
NEXT = "SELECT clock, next_entry_id, next_id FROM orgs WHERE org_id = $1"


NO_HOUR = -1


@dataclass(frozen=True, slots=True)
class EdgeEntries:
    """Entries of one day, from ``first`` up to before ``beyond``, that are added or taken away."""

    day: int
    sign: int
    first: int
    beyond: int


@dataclass(frozen=True, slots=True)
class PartOfDay:
    """A day up to an instant, which is added or taken away.

    It is what came before an hour of the day, and the entries from ``first`` up to before
    ``beyond``: less than an hour of them. Without an hour it is those entries alone.
    """

    day: int
    sign: int
    hour: int
    first: int
    beyond: int

    @property
    def entries(self) -> int:
        """How many entries are read."""
        return self.beyond - self.first


@dataclass(frozen=True, slots=True)
class TimeByDays:
    """[since, until): the days from ``first_day`` up to before ``next_day``, and corrections.

    That is for sums by lease, which are kept by day. Other sums are kept by hour too: they are the
    days of ``sum_days`` with ``parts``. Nothing was recorded after ``clock``; the next lease will
    have the number ``next_lease``.
    """

    since: int
    until: int
    first_day: int
    next_day: int
    edges: tuple[EdgeEntries, ...]
    clock: int
    next_lease: int
    sum_days: range = range(0)
    parts: tuple[PartOfDay, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing can have been recorded in it."""
        return self.since >= self.until

    @property
    def columns(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """The edges with entries as arrays: days, signs, first entries, entries beyond."""
        edges = [edge for edge in self.edges if edge.first < edge.beyond]
        return (
            [edge.day for edge in edges],
            [edge.sign for edge in edges],
            [edge.first for edge in edges],
            [edge.beyond for edge in edges],
        )

    @property
    def part_columns(self) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
        """The parts of days as arrays: days, signs, hours, first entries, entries beyond."""
        return (
            [part.day for part in self.parts],
            [part.sign for part in self.parts],
            [part.hour for part in self.parts],
            [part.first for part in self.parts],
            [part.beyond for part in self.parts],
        )


async def by_days(connection: Connection, org_id: int, since: int, until: int) -> TimeByDays:
    """Cut a time into days; at each end entries are read.

    For sums by lease they are those of the part of the day that has fewer, for others those since
    the beginning of the hour.

    Charges take effect when they are recorded, so a part of a day is a run of entries.
    """
    clock, next_entry, next_lease = await connection.fetchrow(NEXT, org_id) or (0, 1, 1)
    until = min(until, clock + 1)  # nothing was recorded later
    if since >= until:
        return TimeByDays(since, since, 0, 0, (), clock, next_lease)
    day = since // DAY_US
    is_within_day = day == until // DAY_US and until <= clock
    within = {since, since - since % HOUR_US} if is_within_day else set()
    asked = within | {
        place
        for at in (since, until)
        if at % DAY_US and at <= clock
        for place in (at, at - at % HOUR_US, at - at % DAY_US, at - at % DAY_US + DAY_US)
    }
    past = sorted(at for at in asked if at <= clock)
    rows = await connection.fetch(ENTRIES_AT, org_id, past) if past else []
    places = dict.fromkeys(asked, next_entry)
    places |= {at: row[0] for at, row in zip(past, rows, strict=True)}
    begun, ended = _part(places, since, clock, -1), _part(places, until, clock, 1)
    sum_days = range(day, until // DAY_US + (until > clock and until % DAY_US > 0))
    sums = (sum_days, (*begun, *ended))
    if is_within_day:
        edge = EdgeEntries(day, 1, places[since], places[until])
        between = PartOfDay(day, 1, NO_HOUR, places[since], places[until])
        if between.entries <= sum(part.entries for part in sums[1]):
            sums = (range(0), (between,))
        return TimeByDays(since, until, day, day, (edge,), clock, next_lease, *sums)
    first_day, begins = _edge(places, since, clock, -1)
    next_day, ends = _edge(places, until, clock, 1)
    edges = (*begins, *ends)
    return TimeByDays(since, until, first_day, next_day, edges, clock, next_lease, *sums)


def _part(places: dict[int, int], at: int, clock: int, sign: int) -> tuple[PartOfDay, ...]:
    """The part of a day before an instant inside it; of the present day there is no more yet."""
    if not at % DAY_US or at > clock:
        return ()
    first, beyond = places[at - at % HOUR_US], places[at]
    return (PartOfDay(at // DAY_US, sign, at // HOUR_US, first, beyond),)


def _edge(
    places: dict[int, int], at: int, clock: int, sign: int
) -> tuple[int, tuple[EdgeEntries, ...]]:
    """The sums up to an instant: those of the days before a day, and entries to add or to take."""
    day, into = divmod(at, DAY_US)
    if not into:
        return day, ()
    if at > clock:  # all of the day that there is
        return day + 1, ()
    start, middle, end = places[at - into], places[at], places[at - into + DAY_US]
    if middle - start <= end - middle:
        return day, (EdgeEntries(day, sign, start, middle),)
    return day + 1, (EdgeEntries(day, -sign, middle, end),)
