"""Calendar periods: every odd day that a zone can have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpucredits.core.period import Calendar, check_zone, instant_text, period_at

HOUR = 3_600_000_000


def us(text: str) -> int:
    """Microseconds of an instant that is written in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


PERIODS = {
    "a day in UTC": (Calendar.DAY, "UTC", "2026-03-01T12:00", "2026-03-01T00:00", 24),
    "a midnight belongs to the day it begins": (
        *(Calendar.DAY, "UTC", "2026-03-01T00:00"),
        *("2026-03-01T00:00", 24),
    ),
    "the day when Berlin's clocks go forward": (
        *(Calendar.DAY, "Europe/Berlin", "2026-03-29T12:00"),
        *("2026-03-28T23:00", 23),
    ),
    "the day when Berlin's clocks go back": (
        *(Calendar.DAY, "Europe/Berlin", "2026-10-25T00:30"),
        *("2026-10-24T22:00", 25),
    ),
    "the second time that an hour happens": (
        *(Calendar.DAY, "Europe/Berlin", "2026-10-25T01:30"),
        *("2026-10-24T22:00", 25),
    ),
    "a day that begins at one, since midnight is skipped": (
        *(Calendar.DAY, "America/Havana", "2026-03-08T12:00"),
        *("2026-03-08T05:00", 23),
    ),
    "a day whose midnight happens twice": (
        *(Calendar.DAY, "America/Havana", "2026-11-01T05:30"),
        *("2026-11-01T04:00", 25),
    ),
    "an evening that comes back after midnight": (
        *(Calendar.DAY, "America/St_Johns", "2006-10-29T02:45"),
        *("2006-10-29T02:30", 25),
    ),
    "the day after the one that Samoa left out": (
        *(Calendar.DAY, "Pacific/Apia", "2011-12-30T10:00"),
        *("2011-12-30T10:00", 24),
    ),
    "the last day before the one that Samoa left out": (
        *(Calendar.DAY, "Pacific/Apia", "2011-12-30T09:59"),
        *("2011-12-29T10:00", 24),
    ),
    "fourteen hours ahead": (
        *(Calendar.DAY, "Pacific/Kiritimati", "2026-05-01T10:00"),
        *("2026-05-01T10:00", 24),
    ),
    "the furthest behind": (Calendar.DAY, "Etc/GMT+12", "2026-05-01T11:59", "2026-04-30T12:00", 24),
    "a zone of quarters of an hour": (
        *(Calendar.DAY, "Asia/Kathmandu", "2026-05-01T18:15"),
        *("2026-05-01T18:15", 24),
    ),
    "weeks begin on Monday": (
        *(Calendar.WEEK, "UTC", "2026-11-15T23:59"),
        *("2026-11-09T00:00", 168),
    ),
    "a week with a short day": (
        *(Calendar.WEEK, "Europe/Berlin", "2026-03-29T12:00"),
        *("2026-03-22T23:00", 167),
    ),
    "February": (Calendar.MONTH, "UTC", "2026-02-28T23:59", "2026-02-01T00:00", 28 * 24),
    "February of a leap year": (
        *(Calendar.MONTH, "UTC", "2028-02-29T12:00"),
        *("2028-02-01T00:00", 29 * 24),
    ),
    "a century that is no leap year": (
        *(Calendar.MONTH, "UTC", "2100-02-28T12:00"),
        *("2100-02-01T00:00", 28 * 24),
    ),
    "December ends with the year": (
        *(Calendar.MONTH, "UTC", "2026-12-31T23:59"),
        *("2026-12-01T00:00", 31 * 24),
    ),
    "a month with a long day": (
        *(Calendar.MONTH, "America/New_York", "2026-11-30T12:00"),
        *("2026-11-01T04:00", 30 * 24 + 1),
    ),
}


@pytest.mark.parametrize(
    ("calendar", "zone", "at", "starts", "hours"), PERIODS.values(), ids=PERIODS.keys()
)
def test_a_period_has_its_bounds(
    calendar: Calendar, zone: str, at: str, starts: str, hours: int
) -> None:
    """The period that an instant lies in begins and ends where the zone's calendar says."""
    assert period_at(calendar, zone, us(at)) == (us(starts), us(starts) + hours * HOUR)


@pytest.mark.parametrize("calendar", Calendar)
@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Etc/GMT-14", "Asia/Gaza"]
)
def test_periods_follow_each_other_without_a_gap(calendar: Calendar, zone: str) -> None:
    """Over years, each period begins where the last one ended and holds its own first instant."""
    starts_at, ends_at = period_at(calendar, zone, us("2005-01-01T00:00"))
    while ends_at < us("2012-06-01T00:00"):
        assert starts_at < ends_at
        assert period_at(calendar, zone, ends_at - 1) == (starts_at, ends_at)
        following = period_at(calendar, zone, ends_at)
        assert following[0] == ends_at
        starts_at, ends_at = following


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe/", "/UTC", "a\0b"])
def test_a_zone_that_is_not_one_is_an_error(name: str) -> None:
    """A name that is not in the zone data is told apart, whatever it looks like."""
    with pytest.raises(ValueError, match="must be an IANA time zone"):
        check_zone(name)


def test_an_instant_is_written_in_utc() -> None:
    """People read the same instant everywhere."""
    assert instant_text(us("2026-11-15T22:04") + 999_999) == "2026-11-15 22:04:00 UTC"
