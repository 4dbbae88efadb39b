"""Measured use at rest, deduplicated by node and seq.

Owns: inserting usage events, and reading their sums by lease. A trigger keeps the sums (table
``measured``) in the transaction of each event, whoever inserts it.
Must not: move money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.store.database.connection import Connection


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One report of a node, of a reservation, or (0) of a job of the account that it names.

    ``is_attested``: the system vouches for the node that reported. Reports of others in its name
    are kept apart, so that nobody can use up the numbers of a node's own reports.
    """

    org_id: int
    job_id: str
    node: str
    reservation_id: int
    account_id: int  # 0 where a reservation is named
    seq: int
    used_ms: int
    payload: dict[str, Any]
    is_attested: bool = False


async def insert(db: Connection, rows: Sequence[UsageRow]) -> set[int]:
    """Store reports; the positions of the new ones."""
    stored = await db.fetch(
        "WITH report AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[],"
        " $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::boolean[]) WITH ORDINALITY"
        " AS r (org_id, job_id, node, reservation_id, account_id, seq, used_ms, payload,"
        " is_attested, position))"
        " INSERT INTO usage_events (org_id, job_id, node, reservation_id, account_id, seq, used_ms,"
        " recorded_at, payload, is_attested)"
        " SELECT DISTINCT ON (org_id, job_id, node, reservation_id, account_id, is_attested, seq)"
        " org_id, job_id, node, reservation_id, account_id, seq, used_ms, (SELECT ledger_now()),"
        " payload::jsonb, is_attested"
        " FROM report ORDER BY org_id, job_id, node, reservation_id, account_id, is_attested, seq,"
        " position"
        " ON CONFLICT DO NOTHING"
        " RETURNING org_id, job_id, node, reservation_id, account_id, is_attested, seq",
        [row.org_id for row in rows],
        [row.job_id for row in rows],
        [row.node for row in rows],
        [row.reservation_id for row in rows],
        [row.account_id for row in rows],
        [row.seq for row in rows],
        [row.used_ms for row in rows],
        [msgspec.json.encode(row.payload).decode() for row in rows],
        [row.is_attested for row in rows],
    )
    fresh = {tuple(row) for row in stored}
    positions: set[int] = set()
    for position, row in enumerate(rows):
        named = (row.reservation_id, row.account_id, row.is_attested)
        identity = (row.org_id, row.job_id, row.node, *named, row.seq)
        if identity in fresh:
            fresh.discard(identity)
            positions.add(position)
    return positions


async def unknown(db: Connection, rows: Sequence[UsageRow]) -> set[tuple[int, str, int, int]]:
    """(org, job, reservation, account) of reports on leases or accounts that do not exist."""
    asked = sorted({(row.org_id, row.job_id, row.reservation_id, row.account_id) for row in rows})
    found = await db.fetch(
        "SELECT a.place FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])"
        " WITH ORDINALITY AS a (org_id, job_id, reservation_id, account_id, place)"
        " LEFT JOIN reservations r ON r.org_id = a.org_id AND r.reservation_id = a.reservation_id"
        " LEFT JOIN accounts o ON o.org_id = a.org_id AND o.account_id = a.account_id"
        " WHERE r.job_id IS DISTINCT FROM a.job_id AND o.account_id IS NULL",
        *(list(column) for column in zip(*asked, strict=True)),
    )
    return {asked[row["place"] - 1] for row in found}


async def leases(
    db: Connection, numbers: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], MeasuredLease]:
    """The job, node and account of reservations given as (org, number); unknown ones are absent."""
    rows = await db.fetch(
        "SELECT r.org_id, r.reservation_id, r.account, r.job_id, r.node"
        " FROM unnest($1::bigint[], $2::bigint[]) AS asked (org_id, reservation_id)"
        " JOIN reservations r USING (org_id, reservation_id)",
        [org_id for org_id, _ in numbers],
        [number for _, number in numbers],
    )
    return {
        (row["org_id"], row["reservation_id"]): MeasuredLease(
            row["account"], row["job_id"], row["node"]
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class MeasuredLease:
    """The names by which people know a reservation."""

    account: str
    job_id: str
    node: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A reservation's use besides what was charged.

    ``late_used_ms`` is its total use by the last report after its lapse.
    """

    used_ms: int = 0
    events: int = 0
    late_used_ms: int = 0


async def measured(db: Connection, org_id: int, numbers: Sequence[int]) -> dict[int, Measured]:
    """What was measured for each of some reservations of one org."""
    rows = await db.fetch(
        "SELECT reservation_id, sum(used_ms)::bigint AS used_ms, sum(events)::bigint AS events,"
        " max(late_used_ms) AS late_used_ms FROM measured"
        " WHERE org_id = $1 AND reservation_id = ANY($2::bigint[]) GROUP BY reservation_id",
        org_id,
        list(numbers),
    )
    return {
        row["reservation_id"]: Measured(row["used_ms"], row["events"], row["late_used_ms"])
        for row in rows
    }
