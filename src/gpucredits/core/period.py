"""Calendar periods: which instants a local day, week or month begins and ends at.

Owns: the one place where IANA zones and calendars are known, and the text of an instant. A pure
function of the zone data; rows keep what it answers, so that nothing hot ever asks it twice.
Must not: know what a period is used for.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpucredits.core.bounds import NEVER_US

MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Calendar(IntEnum):
    """The calendar periods there are; weeks begin on Monday."""

    DAY = 0
    WEEK = 1
    MONTH = 2


def check_zone(name: str) -> str:
    """The name itself when it is an IANA zone; ValueError says that it is not."""
    try:
        _zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"must be an IANA time zone such as Europe/Berlin, not {name!r}") from None
    return name


def period_at(calendar: Calendar, zone: str, at: int) -> tuple[int, int]:
    """The period [start, end) that the instant lies in; days that a zone skipped do not exist."""
    tz = _zone(zone)
    first = _first_day(calendar, (EPOCH + at * MICROSECOND).astimezone(tz).date())
    starts_at = _begins_at(first, tz)
    while at < starts_at:  # the clocks went back over midnight: the first midnight counts
        first = _first_day(calendar, first - timedelta(days=1))
        starts_at = _begins_at(first, tz)
    following = _next_first_day(calendar, first)
    ends_at = _begins_at(following, tz)
    while ends_at <= at:
        starts_at, following = ends_at, _next_first_day(calendar, following)
        ends_at = _begins_at(following, tz)
    return starts_at, ends_at


def format_instant(micros: int) -> str:
    """RFC 3339 in UTC, with microseconds where there are any."""
    return (EPOCH + micros * MICROSECOND).isoformat().removesuffix("+00:00") + "Z"


def format_end(micros: int) -> str | None:
    """An instant that may be never."""
    return None if micros >= NEVER_US else format_instant(micros)


def instant_text(at: int) -> str:
    """An instant for people, in UTC and to the second."""
    return (EPOCH + at * MICROSECOND).strftime("%Y-%m-%d %H:%M:%S UTC")


def _begins_at(day: date, tz: ZoneInfo) -> int:
    midnight = datetime.combine(day, time(), tzinfo=tz)  # in a gap: the instant of the change
    return (midnight.astimezone(UTC) - EPOCH) // MICROSECOND


def _first_day(calendar: Calendar, day: date) -> date:
    match calendar:
        case Calendar.DAY:
            return day
        case Calendar.WEEK:
            return day - timedelta(days=day.weekday())
        case Calendar.MONTH:
            return day.replace(day=1)


def _next_first_day(calendar: Calendar, first: date) -> date:
    match calendar:
        case Calendar.DAY:
            return first + timedelta(days=1)
        case Calendar.WEEK:
            return first + timedelta(days=7)
        case Calendar.MONTH:
            return (first.replace(day=28) + timedelta(days=4)).replace(day=1)


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
