"""When to begin a test of days and months: hours before any of them ends."""

from __future__ import annotations

from datetime import datetime, timedelta

EARLIEST_HOUR, LATEST_HOUR = 6, 10  # in UTC: from Santiago to Tokyo no day ends for five hours
LATEST_DAY = 26


def until_morning(instant: str) -> int:
    """Seconds to the next such morning, or none if it is one."""
    now = datetime.fromisoformat(instant)
    morning = now
    if not EARLIEST_HOUR <= now.hour < LATEST_HOUR:
        days = 1 if now.hour >= LATEST_HOUR else 0
        morning = now.replace(hour=EARLIEST_HOUR, minute=0, second=1) + timedelta(days=days)
    while morning.day > LATEST_DAY:
        morning += timedelta(days=1)
    return round((morning - now).total_seconds())
