"""A time cut into whole days and what is left at its ends.

Owns: which entries can correct the sums of days where a time begins or ends inside a day.
Must not: add anything up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpucredits.core.bounds import DAY_US, HOUR_US
from gpucredits.store.database.connection import Connection

ENTRIES_AT = """
SELECT entry_at($1, at) FROM unnest($2::bigint[]) WITH ORDINALITY AS asked(at, place) ORDER BY place
"""
NEXT = "SELECT clock, next_entry_id, next_id FROM orgs WHERE org_id = $1"
NO_HOUR = -1
NO_DAY = -1


class Cut(NamedTuple):
    """Where a time begins (sign -1) or ends (sign 1), for sums by lease.

    Entries of ``day`` go from ``first`` up to before ``beyond``; those before the instant ``at``
    end before ``middle``. What a lease had been charged at the instant is what it had been charged
    before the day, and its entries up to ``middle``. Or it is what the lease had been charged
    before the next day, less its entries from ``middle`` on. With NO_DAY the cut is a whole time,
    which begins at ``at``: the entries from ``first`` up to ``middle``.
    """

    sign: int
    day: int
    at: int
    first: int
    middle: int
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
    """[since, until): the entries from ``first`` up to before ``beyond``, in ``cuts`` of days.

    That is for sums by lease, which are kept by day. Other sums are kept by hour too: they are the
    days of ``sum_days`` with ``parts``. Nothing was recorded after ``clock``; the next lease will
    have the number ``next_lease``.
    """

    since: int
    until: int
    clock: int
    next_lease: int
    first: int = 0
    beyond: int = 0
    cuts: tuple[Cut, ...] = ()
    sum_days: range = range(0)
    parts: tuple[PartOfDay, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing can have been recorded in it."""
        return self.since >= self.until

    @property
    def cut_columns(self) -> list[list[int]]:
        """The cuts as arrays: signs, days, instants, entries first, in the middle and beyond."""
        return [list(column) for column in zip(*self.cuts, strict=True)]

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
    """Cut a time into days, and find the entries of the days in which it begins and ends.

    Charges take effect when they are recorded, so a part of a day is a run of entries.
    """
    clock, next_entry, next_lease = await connection.fetchrow(NEXT, org_id) or (0, 1, 1)
    until = min(until, clock + 1)  # nothing was recorded later
    if since >= until:
        return TimeByDays(since, since, clock, next_lease)
    asked = {since, until}
    for at in (since, until):
        if at % DAY_US and at <= clock:
            start = at - at % DAY_US
            asked |= {at - at % HOUR_US, start, start + DAY_US}
    past = sorted(at for at in asked if 0 < at <= clock)
    rows = await connection.fetch(ENTRIES_AT, org_id, past) if past else []
    places = {at: next_entry if at > clock else 1 for at in asked}
    places |= {at: row[0] for at, row in zip(past, rows, strict=True)}
    first, beyond = places[since], places[until]
    day = since // DAY_US
    sum_days = range(day, until // DAY_US + (until > clock and until % DAY_US > 0))
    parts = (*_part(places, since, clock, -1), *_part(places, until, clock, 1))
    begins, ends = _cut(places, since, clock, -1), _cut(places, until, clock, 1)
    cuts = (begins, ends) if begins.middle > 1 else (ends,)  # nothing was charged before it
    if begins.day == ends.day:
        if beyond - first <= sum(part.entries for part in parts):
            sum_days, parts = range(0), (PartOfDay(day, 1, NO_HOUR, first, beyond),)
        if beyond - first <= begins.middle - begins.first + ends.beyond - ends.middle:
            cuts = (Cut(1, NO_DAY, since, first, beyond, beyond),)
    return TimeByDays(since, until, clock, next_lease, first, beyond, cuts, sum_days, parts)


def _part(places: dict[int, int], at: int, clock: int, sign: int) -> tuple[PartOfDay, ...]:
    """The part of a day before an instant inside it; of the present day there is no more yet."""
    if not at % DAY_US or at > clock:
        return ()
    first, beyond = places[at - at % HOUR_US], places[at]
    return (PartOfDay(at // DAY_US, sign, at // HOUR_US, first, beyond),)


def _cut(places: dict[int, int], at: int, clock: int, sign: int) -> Cut:
    """The cut at an instant; at the end of the record there are no entries to read."""
    day, into = divmod(at, DAY_US)
    middle = places[at]
    if not into or at > clock:
        return Cut(sign, day + (into > 0), at, middle, middle, middle)
    start = at - into
    return Cut(sign, day, at, places[start], middle, places[start + DAY_US])
