"""Planned stops of the server: announcements, and how many live leases last through them.

Owns: the rows of maintenances, and counting the leases that are covered.
Must not: extend a lease (its next report does, by the rules of core).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gpucredits.core.money import RATE_PER_MS
from gpucredits.store.database.connection import Connection

OPEN: Final = """
SELECT maintenance_id, announced_at, until, reason, ended_at FROM maintenances
WHERE ended_at = 0 AND until > (SELECT ledger_now()) ORDER BY maintenance_id"""
ANNOUNCE: Final = """
INSERT INTO maintenances (announced_at, until, reason)
SELECT at, at + $1::bigint * 1000, $2 FROM (SELECT ledger_now() AS at) AS present
RETURNING maintenance_id, announced_at, until, reason, ended_at"""
END: Final = """
UPDATE maintenances SET ended_at = (SELECT ledger_now()) WHERE maintenance_id = $1
RETURNING maintenance_id, announced_at, until, reason, ended_at"""
_LEASES: Final = """
SELECT r.org_id, r.reservation_id, r.account, r.payer_id, r.expires_at, r.used_ms, r.settled,
    r.held + r.promised AS ahead, r.milli_gpus::numeric * r.price AS rate, b.beat_at,
    r.expires_at - r.reprieve_ms * 1000 >= $2 AS is_covered, b.beat_at >= $1 AS is_heard
FROM reservations r CROSS JOIN LATERAL (SELECT lease_beat_at(r.beat_at, r.expires_at, r.window_ms,
    r.escrow_windows, r.extended_ms + r.reprieve_ms) AS beat_at) AS b
WHERE r.state = 0 AND r.expires_at > (SELECT ledger_now())"""
COVERAGE: Final = f"""
SELECT count(*), count(*) FILTER (WHERE l.is_covered),
    count(*) FILTER (WHERE NOT l.is_covered AND NOT l.is_heard),
    count(*) FILTER (WHERE NOT l.is_covered AND l.is_heard)
FROM ({_LEASES}) AS l"""  # noqa: S608  # constant texts only
SHORT: Final = f"""
SELECT l.org_id, l.reservation_id, l.account, a.path AS payer, l.expires_at AS ends_at,
    greatest(div(l.rate * (l.used_ms + ($2 - l.beat_at) / 1000), {RATE_PER_MS}) - l.settled
        - l.ahead, 0)::bigint AS missing
FROM ({_LEASES}) AS l
JOIN accounts a ON a.org_id = l.org_id AND a.account_id = l.payer_id
WHERE NOT l.is_covered AND l.is_heard
    AND (l.org_id, l.reservation_id) > ($3::bigint, $4::bigint)
ORDER BY l.org_id, l.reservation_id LIMIT $5"""  # noqa: S608  # constant texts only


class Maintenance(NamedTuple):
    """A planned stop."""

    maintenance_id: int
    announced_at: int
    until: int
    reason: str
    ended_at: int


class Coverage(NamedTuple):
    """The numbers of live leases: covered, without a report since, and too short."""

    live: int
    covered: int
    waiting: int
    short: int


class ShortLease(NamedTuple):
    """A renewed lease that ends before the maintenance, and the credits that its payer lacks."""

    org_id: int
    reservation_id: int
    account: str
    payer: str
    ends_at: int
    missing: int


async def open_maintenances(db: Connection) -> list[Maintenance]:
    """The announced stops that are neither over nor ended, the oldest first."""
    return [Maintenance(*row) for row in await db.fetch(OPEN)]


async def announce(db: Connection, for_ms: int, reason: str) -> Maintenance:
    """Announce a planned stop from now on."""
    return Maintenance(*await db.fetchrow(ANNOUNCE, for_ms, reason))


async def end(db: Connection, maintenance_id: int) -> Maintenance:
    """End a planned stop before its time."""
    return Maintenance(*await db.fetchrow(END, maintenance_id))


async def coverage_of(db: Connection, stop: Maintenance) -> Coverage:
    """Count the live leases that last to the end of a planned stop, and the others."""
    return Coverage(*await db.fetchrow(COVERAGE, stop.announced_at, stop.until))


async def short_leases(
    db: Connection, stop: Maintenance, after: tuple[int, int], limit: int
) -> list[ShortLease]:
    """Leases that have reported since and end too early, in order of org and number."""
    rows = await db.fetch(SHORT, stop.announced_at, stop.until, *after, limit)
    return [ShortLease(*row) for row in rows]
