"""The exposure of payers: the most that their live leases could still cost if no server answered.

Owns: the sums over leases, by the formulas of core/rules/leases/exposure.py.
Must not: leave out a lease that is not written down as ended, since leases never cost more.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gpucredits.core.account import Model, org_of
from gpucredits.core.money import RATE_PER_MS
from gpucredits.core.rules.leases.exposure import Exposure
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

EXPOSURE: Final = f"""
WITH present AS MATERIALIZED (SELECT ledger_now() AS at), last_outage AS MATERIALIZED (
    SELECT o.since, o.until, o.grace_ms FROM present JOIN outages o ON o.until <= present.at
    WHERE o.grace_ms > 0 ORDER BY o.until DESC LIMIT 1
), leases AS (
    SELECT r.org_id, r.payer_id, r.held, r.promised,
        greatest(r.settled + r.held - div(t.rate * (r.used_ms + r.window_ms), {RATE_PER_MS}), 0)
            AS escrow,
        CASE WHEN t.lives_until <= r.expires_at - r.reprieve_ms * 1000 THEN 0 ELSE
            greatest(div(t.rate * ((t.lives_until - r.admitted_at) / 1000), {RATE_PER_MS})
                - r.settled - r.held - r.promised, 0) END AS grace
    FROM present CROSS JOIN reservations r
    LEFT JOIN last_outage o ON true
    CROSS JOIN LATERAL (
        SELECT r.milli_gpus::numeric * r.price AS rate, greatest(r.expires_at,
            CASE WHEN r.expires_at > o.since AND lease_beat_at(r.beat_at, r.expires_at,
                r.window_ms, r.escrow_windows, r.extended_ms + r.reprieve_ms) < o.until
                THEN o.until + least(r.window_ms, o.grace_ms) * 1000 END,
            -- it ended before, and may have a grace of several outages that follow one another
            CASE WHEN r.expires_at <= o.since
                THEN present.at + least(r.window_ms, o.grace_ms) * 1000 END) AS lives_until
    ) AS t
    WHERE r.state = 0 [in_org]
), payers AS MATERIALIZED (
    SELECT a.path, count(*) AS leases, sum(l.held)::bigint AS held,
        sum(l.escrow)::bigint AS escrow, sum(l.promised)::bigint AS promised,
        least(sum(l.grace), greatest(a.remaining - a.reserved - a.debt + sum(l.held)
            + CASE a.model WHEN {int(Model.POSTPAID)} THEN a.credit_limit ELSE 0 END, 0))::bigint
            AS grace
    FROM leases l JOIN accounts a ON a.org_id = l.org_id AND a.account_id = l.payer_id
    WHERE [where]
    GROUP BY a.org_id, a.account_id
)
SELECT '' AS path, coalesce(sum(leases), 0)::bigint, coalesce(sum(held), 0)::bigint,
    coalesce(sum(escrow), 0)::bigint, coalesce(sum(promised), 0)::bigint,
    coalesce(sum(grace), 0)::bigint, (SELECT at FROM present)
FROM payers
UNION ALL
SELECT * FROM (
    SELECT path, leases, held, escrow, promised, grace, 0 FROM payers
    WHERE path > [after] ORDER BY path LIMIT [limit]
) AS page
"""  # noqa: S608  # constant texts only


class PayerExposure(NamedTuple):
    """The exposure of one payer or of all, and the number of leases."""

    path: str
    leases: int
    exposure: Exposure


class ExposureFilter(NamedTuple):
    """Payers at or below a path, all for an empty one, after a path in their order."""

    under: str
    after: str = ""
    limit: int = 100


async def read_exposure(
    db: Connection, org_id: int | None, wanted: ExposureFilter
) -> tuple[int, PayerExposure, list[PayerExposure]]:
    """The time, the exposure of all payers in scope, and a page of them by path."""
    where = Where(["true"])
    places = {"in_org": ""}
    if org_id is not None:
        place = where.value(org_id)
        places["in_org"] = f"AND r.org_id = {place}"
    if wanted.under and wanted.under != org_of(wanted.under):
        where.under("a.path", wanted.under)
    places |= {"after": where.value(wanted.after), "limit": where.value(wanted.limit)}
    rows = await db.fetch(where.into(EXPOSURE, **places), *where.values)
    total, *page = (PayerExposure(row[0], row[1], Exposure(*row[2:6])) for row in rows)
    return rows[0][6], total, page
