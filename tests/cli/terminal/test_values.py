"""What people write on a command line is understood, or refused with what would be right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from gpucredits.cli.terminal import values
from gpucredits.core.duration import format_ms

SECOND_MS = 1_000
NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90", 90 * SECOND_MS),
        ("90s", 90 * SECOND_MS),
        ("250ms", 250),
        ("1.5s", 1_500),
        ("0.3", 300),
        ("1.5h", 5_400 * SECOND_MS),
        ("1m30.25s", 90_250),
        ("15m", 900 * SECOND_MS),
        ("1h30m", 5_400 * SECOND_MS),
        ("2d", 172_800 * SECOND_MS),
        ("1w", 604_800 * SECOND_MS),
    ],
)
def test_durations(text: str, ms: int) -> None:
    """Durations are written with their unit; a bare number is seconds."""
    assert values.duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "soon", "1,5h", "1.5ms", "1.5555s", "-5s", "5 s", "5y", "m", "٣s"]
)
def test_what_is_no_duration(text: str) -> None:
    """Anything else is refused with an example."""
    with pytest.raises(click.BadParameter, match="1h30m"):
        values.duration(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.25+04:00", datetime(2026, 1, 1, 23, 4, 5, 250_000, tzinfo=UTC)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_instants(text: str, moment: datetime) -> None:
    """Instants are RFC 3339, and a date is its first instant in UTC."""
    assert values.instant(text) == moment


@pytest.mark.parametrize(
    ("text", "distance"),
    [
        ("now", timedelta(0)),
        ("30d", timedelta(days=30)),
        ("+2h", timedelta(hours=2)),
        ("2h ago", timedelta(hours=-2)),
    ],
)
def test_relative_instants(text: str, distance: timedelta) -> None:
    """What is relative counts from a now that is told later."""
    moment = values.instant(text)
    assert isinstance(moment, values.FromNow)
    assert moment.at(NOW) == NOW + distance


@pytest.mark.parametrize(
    ("text", "distance"),
    [
        ("now", timedelta(0)),
        ("7d", timedelta(days=-7)),
        ("7d ago", timedelta(days=-7)),
        ("1h30m", timedelta(minutes=-90)),
    ],
)
def test_instants_of_the_past(text: str, distance: timedelta) -> None:
    """Where one looks back, a length of time is that long ago, with or without the word."""
    moment = values.past(text)
    assert isinstance(moment, values.FromNow)
    assert moment.at(NOW) == NOW + distance


@pytest.mark.parametrize("text", ["+7d", "yesterday", "7", ""])
def test_what_is_no_instant_of_the_past(text: str) -> None:
    """Anything else is refused with an example, and so is a length that is said to be ahead."""
    with pytest.raises(click.BadParameter, match=r"7d \(seven days ago\)"):
        values.past(text)


@pytest.mark.parametrize(
    "text", ["", "later", "2026-01-02T03:04:05", "2026-02-30", "12", "999999999999w", "1969-01-01"]
)
def test_what_is_no_instant(text: str) -> None:
    """Anything else is refused with an example."""
    with pytest.raises(click.BadParameter, match="2026-03-01"):
        values.instant(text)


@pytest.mark.parametrize(
    ("text", "amount"), [("12.5", "12.5"), ("1000000000", "1000000000"), ("0", "0")]
)
def test_amounts(text: str, amount: str) -> None:
    """Amounts stay the text that they are."""
    assert values.amount(text) == amount


@pytest.mark.parametrize("text", ["1000000000.000001", "9999999999", "9" * 40])
def test_an_amount_that_is_too_large_is_told_the_limit(text: str) -> None:
    """How much is too much is said."""
    with pytest.raises(click.BadParameter, match="at most 1000000000 credits"):
        values.amount(text)


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1e3", "0.0000001", "ten", "1.", "NaN", "1,5", ",5", "1,500", "1_000", "1 000"],
)
def test_what_is_no_amount(text: str) -> None:
    """Anything else is refused with an example: a comma may be a point or a separator."""
    with pytest.raises(click.BadParameter, match=r"12\.5"):
        values.amount(text)


def test_labels() -> None:
    """A label is split at its first equals sign."""
    assert values.label("team=a=b") == ("team", "a=b")
    assert values.label("team=") == ("team", "")
    for text in ("team", "=x", ""):
        with pytest.raises(click.BadParameter, match="key=value"):
            values.label(text)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0s"), (1_500, "1.5s"), (59_999, "59.999s"), (60_000, "1m"), (5_400_000, "1h30m")],
)
def test_durations_for_people(ms: int, text: str) -> None:
    """Durations are shown in the form in which they may be written."""
    assert format_ms(ms) == text
    assert values.duration(text) == ms
