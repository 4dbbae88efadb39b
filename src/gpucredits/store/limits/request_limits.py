"""Limits on requests and the last known levels of their buckets, at rest.

Owns: the rows of request_limits and request_buckets. Levels are stored with the database's own
time, so that servers whose clocks differ agree on how old they are.
Must not: decide whether a request passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpucredits.core.request_limit import BucketName, Holder, RequestLimit
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors


@dataclass(frozen=True, slots=True)
class Level:
    """What a bucket held ``age_us`` ago, and the terms it is filled by."""

    name: BucketName
    limit: RequestLimit
    level: int
    fraction: int
    age_us: int


async def find_limit(
    db: Connection, *, org_id: int, holder: Holder, number: int
) -> RequestLimit | None:
    """The limit of a key's or an org's own."""
    row = await db.fetchrow(
        "SELECT capacity, refill_per_hour FROM request_limits"
        " WHERE org_id = $1 AND holder = $2 AND number = $3",
        org_id,
        holder,
        number,
    )
    return None if row is None else RequestLimit(*row)


async def set_limit(
    db: Connection, limit: RequestLimit, *, org_id: int, holder: Holder, number: int
) -> None:
    """Set the limit of a key or an org."""
    await db.execute(
        "INSERT INTO request_limits VALUES ($1, $2, $3, $4, $5, ledger_now())"
        " ON CONFLICT (org_id, holder, number) DO UPDATE SET capacity = excluded.capacity,"
        " refill_per_hour = excluded.refill_per_hour, set_at = excluded.set_at",
        org_id,
        holder,
        number,
        limit.capacity,
        limit.refill_per_hour,
    )


async def end_limit(db: Connection, *, org_id: int, holder: Holder, number: int) -> None:
    """Let the server's default hold again."""
    await db.execute(
        "DELETE FROM request_limits WHERE org_id = $1 AND holder = $2 AND number = $3",
        org_id,
        holder,
        number,
    )


async def load_levels(pool: Pool, names: Sequence[BucketName]) -> dict[BucketName, Level]:
    """The last saved levels of some buckets; those that were never saved are left out."""
    with driver_errors():
        rows = await pool.fetch(
            "SELECT wanted.position, saved.capacity, saved.refill_per_hour, saved.level,"
            " saved.fraction, greatest(0, clock.now - saved.saved_at) AS age_us"
            " FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) WITH ORDINALITY"
            " AS wanted (org_id, holder, number, position)"
            " JOIN request_buckets AS saved USING (org_id, holder, number)"
            " CROSS JOIN (SELECT ledger_now() AS now) AS clock",
            [name.org_id for name in names],
            [int(name.holder) for name in names],
            [name.number for name in names],
        )
    found = {}
    for position, capacity, refill_per_hour, level, fraction, age_us in rows:
        name = names[position - 1]
        limit = RequestLimit(capacity, refill_per_hour)
        found[name] = Level(name, limit, level, fraction, age_us)
    return found


async def save_levels(pool: Pool, levels: Iterable[Level]) -> None:
    """Store levels in one statement; of two servers, the one that looked later is believed.

    They are in one order everywhere, so that two servers that save at once do not lock each other.
    """
    rows = sorted(levels, key=lambda each: each.name)
    with driver_errors():
        await pool.execute(
            "INSERT INTO request_buckets (org_id, holder, number, capacity, refill_per_hour, level,"
            " fraction, saved_at)"
            " SELECT org_id, holder, number, capacity, refill_per_hour, level, fraction,"
            " clock.now - age_us"
            " FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[],"
            " $6::bigint[], $7::bigint[], $8::bigint[]) AS seen"
            " (org_id, holder, number, capacity, refill_per_hour, level, fraction, age_us)"
            " CROSS JOIN (SELECT ledger_now() AS now) AS clock"
            " ON CONFLICT (org_id, holder, number) DO UPDATE SET capacity = excluded.capacity,"
            " refill_per_hour = excluded.refill_per_hour, level = excluded.level,"
            " fraction = excluded.fraction, saved_at = excluded.saved_at"
            " WHERE request_buckets.saved_at <= excluded.saved_at",
            [each.name.org_id for each in rows],
            [int(each.name.holder) for each in rows],
            [each.name.number for each in rows],
            [each.limit.capacity for each in rows],
            [each.limit.refill_per_hour for each in rows],
            [each.level for each in rows],
            [each.fraction for each in rows],
            [each.age_us for each in rows],
        )
