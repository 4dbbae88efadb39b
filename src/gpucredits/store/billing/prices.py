"""Versions of prices at rest.

Owns: adding rows of list_prices and discounts, and listing both. One numbering serves both, so that
a reservation's price id is enough to find the version it was given. An end is a row too: a version
without a price, shown only as the end of the versions before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core import bounds
from gpucredits.core.price import Price
from gpucredits.store.database.connection import Connection

# When a version is over for good: at its own end, or where an end was set after it began.
ENDS_AT = """least(p.effective_to, (SELECT min(e.effective_from) FROM prices e
    WHERE e.org_id = p.org_id AND e.gpu_type = p.gpu_type AND e.region = p.region
    AND e.account = p.account AND e.is_end
    AND (e.effective_from, e.price_id) > (p.effective_from, p.price_id)))"""

LIST = f"""
WITH moment AS MATERIALIZED (SELECT ledger_now() AS now),
versions AS (
    SELECT p.*, {ENDS_AT} AS ends_at FROM prices p
    WHERE NOT p.is_end AND p.price_id < $1
        AND ($2::text IS NULL OR p.gpu_type = $2) AND ($3::text IS NULL OR p.region = $3)
        AND ($4::text IS NULL OR p.account = $4)
        AND ($5::bigint IS NULL OR p.effective_from <= $5)
        AND (p.account = '' OR $6 = '' OR starts_with(p.account, $6 || '/')
            OR p.account = ANY($7::text[]))
    ORDER BY p.price_id DESC LIMIT $8
)
SELECT price_id, gpu_type, region, credits_per_gpu_hour, effective_from, account,
    ends_at AS effective_to,
    CASE WHEN ends_at <= moment.now THEN 'ended' WHEN effective_from > moment.now THEN 'future'
        WHEN EXISTS (SELECT FROM prices l WHERE l.org_id = p.org_id
            AND l.gpu_type = p.gpu_type AND l.region = p.region AND l.account = p.account
            AND l.effective_from <= moment.now AND l.effective_to > moment.now
            AND (l.effective_from, l.price_id) > (p.effective_from, p.price_id))
        THEN 'replaced' ELSE 'in_force' END AS state
FROM versions p, moment ORDER BY price_id DESC
"""  # noqa: S608  # constant texts only


LIST_PRICE = """
INSERT INTO list_prices (price_id, gpu_type, region, credits_per_gpu_hour, effective_from,
    effective_to, is_end, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, ledger_now())
"""
DISCOUNT = """
INSERT INTO discounts (price_id, gpu_type, region, credits_per_gpu_hour, effective_from,
    effective_to, is_end, org_id, account, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ledger_now())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFilter:
    """Which versions to list; None means any. ``lineage`` are the paths whose prices apply."""

    gpu_type: str | None = None
    region: str | None = None
    account: str | None = None
    in_force_at: int | None = None
    scope: str = ""
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What a price is for: a type of GPU in a region, for everybody or for an account."""

    org_id: int
    gpu_type: str
    region: str
    account: str


async def insert(  # what it is for, how much, and when
    db: Connection,
    what: Priced,
    *,
    credits_per_gpu_hour: int,
    effective_from: int,
    effective_to: int = bounds.NEVER_US,
    is_end: bool = False,
) -> Price:
    """Add a version, or the end of those before it."""
    number: int = await db.fetchval("SELECT nextval('price_numbers')")
    await db.execute("UPDATE system_state SET prices_version = new_version()")
    terms = (what.gpu_type, what.region, credits_per_gpu_hour, effective_from, effective_to, is_end)
    if what.account:
        await db.execute(DISCOUNT, number, *terms, what.org_id, what.account)
    else:
        await db.execute(LIST_PRICE, number, *terms)
    return Price(
        price_id=number,
        gpu_type=what.gpu_type,
        region=what.region,
        credits_per_gpu_hour=credits_per_gpu_hour,
        effective_from=effective_from,
        account=what.account,
        effective_to=effective_to,
        is_end=is_end,
    )


async def in_force(db: Connection, what: Priced, at: int) -> Price | None:
    """The version of exactly this owner that is in force at an instant."""
    row = await db.fetchrow(
        "SELECT price_id, gpu_type, region, credits_per_gpu_hour, effective_from, account,"
        " effective_to, is_end FROM prices WHERE org_id = $1 AND gpu_type = $2 AND region = $3"
        " AND account = $4 AND effective_from <= $5 AND effective_to > $5"
        " ORDER BY effective_from DESC, price_id DESC LIMIT 1",
        what.org_id,
        what.gpu_type,
        what.region,
        what.account,
        at,
    )
    found = None if row is None else Price(**row)
    return None if found is None or found.is_end else found


async def is_in_force(db: Connection, price: Price, org_id: int, at: int) -> bool:
    """Whether a version is the one of its owner that is in force at an instant."""
    what = Priced(
        org_id=org_id, gpu_type=price.gpu_type, region=price.region, account=price.account
    )
    return await in_force(db, what, at) == price


async def page(
    db: Connection, which: PriceFilter, *, before: int, limit: int
) -> list[tuple[Price, str]]:
    """Versions, the newest first: list prices, and discounts in or above the scope.

    Each comes with its state: in force now, to come, replaced, or ended.
    """
    rows = await db.fetch(
        LIST,
        before,
        which.gpu_type,
        which.region,
        which.account,
        which.in_force_at,
        which.scope,
        list(which.lineage),
        limit,
    )
    found = [dict(row) for row in rows]
    return [(Price(**row), state) for row in found for state in (row.pop("state"),)]
