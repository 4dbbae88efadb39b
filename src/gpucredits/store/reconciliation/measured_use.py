"""Leases and the use that nodes measured for them, for the reconciler.

Owns: which measurements count as attested by the lease's own node.
Must not: compare anything, or move money.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpucredits.core.reconciliation.comparison import NodeUse, Span
from gpucredits.core.reservation import Reservation
from gpucredits.store.book.rows import stored_lease
from gpucredits.store.book.tables import LEASE
from gpucredits.store.database.connection import Connection

SPANS_READ_MAX: Final = 100_000  # of one lease

# What a node measured more than once, or in parts that touch, is joined here already. The word of
# the lease's own node counts, and of another only where people said that the use is the lease's.
# Use without a lease is of its job's only lease: once the job has run again, people say whose. A
# lease that was canceled (state 2) before its job started is no such run.
MEASURED = """
SELECT d.place, m.* FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])
    WITH ORDINALITY AS d (org_id, reservation_id, job_id, node, place)
CROSS JOIN LATERAL (
    SELECT g.node, g.is_attested, g.events, lower(part) AS start_ms, upper(part) AS end_ms FROM (
        SELECT e.node, e.is_attested, count(*) AS events, range_agg(int8range(
            (e.payload ->> 'start_ms')::bigint, (e.payload ->> 'end_ms')::bigint))
            FILTER (WHERE e.payload ? 'start_ms' AND e.payload ? 'end_ms') AS spans
        FROM (
            SELECT node, payload, is_attested AND node <> '' AND node = d.node AS is_attested
            FROM usage_events WHERE org_id = d.org_id AND job_id = d.job_id
                AND reservation_id = d.reservation_id AND NOT is_late
            UNION ALL
            SELECT e.node, e.payload,
                e.is_attested AND e.node <> '' AND (u.decided_by <> '' OR s.is_only)
            FROM unmatched_use u CROSS JOIN LATERAL (
                SELECT u.node = d.node AND NOT EXISTS (
                    SELECT FROM reservations o WHERE o.org_id + 0 = u.org_id
                        AND o.job_id = u.job_id AND o.account_id + 0 = u.account_id
                        AND o.node = u.node AND o.reservation_id <> u.reservation_id
                        AND NOT (o.state = 2 AND o.used_ms = 0)
                ) AS is_only OFFSET 0
            ) AS s
            JOIN usage_events e ON e.org_id = u.org_id AND e.job_id = u.job_id AND e.node = u.node
                AND e.reservation_id = 0 AND e.account_id = u.account_id AND NOT e.is_late
            WHERE u.org_id = d.org_id AND u.reservation_id = d.reservation_id AND u.state = 1
        ) AS e GROUP BY e.node, e.is_attested
    ) AS g LEFT JOIN LATERAL unnest(g.spans) AS part ON true
    ORDER BY g.is_attested DESC, g.node, part LIMIT $5
) AS m
"""


async def read_lease(db: Connection, org_id: int, reservation_id: int) -> Reservation | None:
    """A whole lease."""
    return (await read_leases(db, [(org_id, reservation_id)])).get((org_id, reservation_id))


async def read_leases(
    db: Connection, numbers: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], Reservation]:
    """Whole leases, by org and number."""
    rows = await db.fetch(
        f"SELECT {LEASE.listed('r')}, r.org_id AS of_org FROM reservations r"  # noqa: S608  # names of columns only
        " JOIN unnest($1::bigint[], $2::bigint[]) AS d (org_id, reservation_id)"
        " ON d.org_id = r.org_id AND d.reservation_id = r.reservation_id",
        [org_id for org_id, _ in numbers],
        [number for _, number in numbers],
    )
    return {(row["of_org"], row["reservation_id"]): stored_lease(row) for row in rows}


async def read_measured(
    db: Connection, leases: Sequence[tuple[int, Reservation]]
) -> list[tuple[NodeUse, ...]]:
    """The measurements of each node for some leases, in the order of the leases.

    Events that people matched to a lease are included.
    """
    rows = await db.fetch(
        MEASURED,
        [org_id for org_id, _ in leases],
        [lease.reservation_id for _, lease in leases],
        [lease.job_id for _, lease in leases],
        [lease.node for _, lease in leases],
        SPANS_READ_MAX,
    )
    found: list[dict[tuple[str, bool], tuple[int, list[Span]]]] = [{} for _ in leases]
    for row in rows:
        key = (row["node"], row["is_attested"])
        _, spans = found[row["place"] - 1].setdefault(key, (row["events"], []))
        if row["start_ms"] is not None:
            spans.append((row["start_ms"], row["end_ms"]))
    return [
        tuple(
            NodeUse(node, events, tuple(spans), is_attested)
            for (node, is_attested), (events, spans) in each.items()
        )
        for each in found
    ]
