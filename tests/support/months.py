"""Months by a server's clock."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpucredits.client import Client


def seconds_to_the_next_month(client: Client) -> int:
    """Until the month is over by the server's clock, and a little more."""
    now = datetime.fromisoformat(client.advance_clock(0).now)
    first = (now.replace(day=1, hour=0, minute=0, second=0) + timedelta(days=32)).replace(day=1)
    return int((first - now).total_seconds()) + 2 * 60
