"""Signs of life of servers, the outages between them, and announced maintenance.

Owns: these rows. One statement gives a sign, records an outage that has ended, and reads what every
decision needs: the outages that may still matter, and the end of a maintenance.
Must not: decide what an outage means for a lease (core does).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gpucredits.core import bounds
from gpucredits.core.reservation import Outage
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors

# Outages that lie ahead of the present were recorded by a clock that was wrong.
RECENT: Final = f"""
SELECT o.since, o.until, o.grace_ms FROM (SELECT ledger_now() AS at) AS present
JOIN outages o ON o.until BETWEEN present.at - {bounds.LATE_USE_US_MAX} AND present.at
ORDER BY o.until DESC LIMIT {bounds.OUTAGES_KEPT}"""  # noqa: S608  # constant texts only
EXTENDED_UNTIL: Final = """
SELECT coalesce(max(m.until), 0) FROM (SELECT ledger_now() AS at) AS present
JOIN maintenances m ON m.until > present.at AND m.announced_at <= present.at AND m.ended_at = 0"""
SIGN: Final = "SELECT sign_of_life($1, $2)"


class LifeNews(NamedTuple):
    """The outages that may still matter, the oldest first, and the end of a maintenance or 0.

    ``was_away``: an outage has just ended.
    """

    was_away: bool
    outages: tuple[Outage, ...]
    maintenance_until: int


async def give_sign(connection: Connection | Pool, *, away_us: int, grace_ms: int) -> LifeNews:
    """Give a sign of life; if it ends an outage, the outage is recorded first."""
    with driver_errors():
        was_away = await connection.fetchval(SIGN, away_us, grace_ms)
        outages = await read_outages(connection)
        return LifeNews(was_away, outages, await connection.fetchval(EXTENDED_UNTIL))


async def read_outages(connection: Connection | Pool) -> tuple[Outage, ...]:
    """The outages that may still matter, the oldest first."""
    rows = await connection.fetch(RECENT)
    return tuple(Outage(*row) for row in reversed(rows))
