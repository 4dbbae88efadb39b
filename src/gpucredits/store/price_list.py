"""Versions of prices at rest.

Owns: adding and listing rows of prices. One numbering serves list prices and discounts, so that a
reservation's price id is enough to find the version it was given.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.price import Price
from gpucredits.store.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFilter:
    """Which versions to list; None means any. ``lineage`` are the paths whose prices apply."""

    gpu_type: str | None = None
    region: str | None = None
    account: str | None = None
    in_force_at: int | None = None
    scope: str = ""
    lineage: tuple[str, ...] = ()


async def insert(
    db: Connection,
    *,
    org_id: int,
    gpu_type: str,
    region: str,
    credits_per_gpu_hour: int,
    effective_from: int | None,
    account: str,
) -> Price:
    """Add a version; without a start it is in force from now."""
    row = await db.fetchrow(
        "WITH number AS (UPDATE orgs SET next_id = next_id + 1 WHERE org_id = 0"
        " RETURNING next_id - 1 AS id), moment AS (SELECT ledger_now() AS now)"
        " INSERT INTO prices (org_id, price_id, gpu_type, region, credits_per_gpu_hour,"
        " effective_from, account, created_at)"
        " SELECT $1, number.id, $2, $3, $4, coalesce($5, moment.now), $6, moment.now"
        " FROM number, moment RETURNING price_id, gpu_type, region, credits_per_gpu_hour,"
        " effective_from, account",
        org_id,
        gpu_type,
        region,
        credits_per_gpu_hour,
        effective_from,
        account,
    )
    if row is None:
        raise LookupError("org 0 is missing")
    return Price(**row)


async def page(
    db: Connection, which: PriceFilter, *, before: int, limit: int
) -> list[tuple[Price, str]]:
    """Versions, the newest first: list prices, and discounts in or above the scope.

    With each stands whether it is in force now, is to come, or has been replaced.
    """
    rows = await db.fetch(
        "WITH moment AS MATERIALIZED (SELECT ledger_now() AS now)"
        " SELECT price_id, gpu_type, region, credits_per_gpu_hour, effective_from, account,"
        " CASE WHEN effective_from > moment.now THEN 'future'"
        " WHEN EXISTS (SELECT FROM prices l WHERE l.org_id = p.org_id"
        " AND l.gpu_type = p.gpu_type AND l.region = p.region AND l.account = p.account"
        " AND l.effective_from <= moment.now"
        " AND (l.effective_from, l.price_id) > (p.effective_from, p.price_id))"
        " THEN 'replaced' ELSE 'in_force' END AS state"
        " FROM prices p, moment WHERE price_id < $1"
        " AND ($2::text IS NULL OR gpu_type = $2) AND ($3::text IS NULL OR region = $3)"
        " AND ($4::text IS NULL OR account = $4)"
        " AND ($5::bigint IS NULL OR effective_from <= $5)"
        " AND (account = '' OR $6 = '' OR starts_with(account, $6 || '/')"
        " OR account = ANY($7::text[]))"
        " ORDER BY price_id DESC LIMIT $8",
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
