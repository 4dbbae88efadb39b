"""Measured use that names no lease, or a lease that does not exist: a queue for people.

Owns: the rows of unmatched_use. A row stands for the events of one job on one node; later events
follow the decision about the row. A row is made in the transaction of its first event. Each org has
a bound on its rows; events beyond it are counted (unmatched_drops) and dropped.
Must not: decide which lease the use belongs to, unless there is only one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import asyncpg

from gpucredits.store.billing import usage_events
from gpucredits.store.billing.usage_events import UsageRow
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgFilter, OrgRows

OPEN, MATCHED, DISMISSED = range(3)
OPEN_MAX: Final = 10_000  # of one org: beyond, new use without a lease is not kept

Group = tuple[int, int, str, str]  # org, account, job, node

LOCK = """
INSERT INTO org_numbers AS n (org_id)
SELECT org_id FROM orgs WHERE org_id = ANY($1::bigint[]) ORDER BY org_id
ON CONFLICT (org_id) DO UPDATE SET unmatched = n.unmatched RETURNING n.org_id
"""
# The lease of a job is clear where the job has only one on the node, or, for use without a node,
# only one at all.
NEW = """
SELECT g.place, g.org_id, a.path, l.leases, l.reservation_id
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])
    WITH ORDINALITY AS g (org_id, account_id, job_id, node, place)
LEFT JOIN unmatched_use u ON u.org_id = g.org_id AND u.account_id = g.account_id
    AND u.job_id = g.job_id AND u.node = g.node
LEFT JOIN accounts a ON a.org_id = g.org_id AND a.account_id = g.account_id
CROSS JOIN LATERAL (
    SELECT count(*) AS leases, min(r.reservation_id) AS reservation_id FROM reservations r
    WHERE r.org_id + 0 = g.org_id AND r.job_id = g.job_id
        AND r.account_id + 0 = g.account_id AND g.account_id <> 0 AND g.node IN ('', r.node)
) AS l
WHERE u.unmatched_id IS NULL ORDER BY g.place
"""
WAITING = """
SELECT count(*) FROM (SELECT FROM unmatched_use WHERE org_id = $1 AND state = 0 LIMIT $2) AS rows
"""
NUMBERS = "UPDATE org_numbers SET unmatched = unmatched + $2 WHERE org_id = $1 RETURNING unmatched"
DROPPED = """
INSERT INTO unmatched_drops AS d (org_id, events, last_at) VALUES ($1, $2, ledger_now())
ON CONFLICT (org_id) DO UPDATE SET events = d.events + excluded.events, last_at = excluded.last_at
"""
TOUCH = """
UPDATE unmatched_use u SET last_at = greatest(u.last_at, f.last_at)
FROM (
    SELECT org_id, account_id, job_id, node, max(recorded_at) AS last_at FROM usage_events
    WHERE recorded_at > $1 AND recorded_at <= $2 AND reservation_id = 0 AND NOT is_late
    GROUP BY 1, 2, 3, 4
) AS f
WHERE u.org_id = f.org_id AND u.account_id = f.account_id AND u.job_id = f.job_id
    AND u.node = f.node AND u.last_at < f.last_at
"""
INSERT = """
INSERT INTO unmatched_use (org_id, unmatched_id, account_id, account, job_id, node, state,
    reservation_id, first_at, last_at)
SELECT $1, n.unmatched_id, n.account_id, n.account, n.job_id, n.node,
    CASE n.reservation_id WHEN 0 THEN 0 ELSE 1 END, n.reservation_id, ledger_now(), ledger_now()
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
    AS n (unmatched_id, account_id, account, job_id, node, reservation_id)
"""
LIST = """
SELECT u.*, e.events, e.used_ms FROM (
    SELECT org_id, unmatched_id, account_id, account, job_id, node, state, reservation_id,
        first_at, last_at, decided_by, decided_at, note FROM unmatched_use
    WHERE [where] [order]
) AS u
CROSS JOIN LATERAL (
    SELECT count(*) AS events, coalesce(sum(x.used_ms), 0)::bigint AS used_ms FROM usage_events x
    WHERE x.org_id = u.org_id AND x.job_id = u.job_id AND x.node = u.node
        AND x.reservation_id = 0 AND x.account_id = u.account_id AND NOT x.is_late
) AS e
ORDER BY u.org_id DESC, u.unmatched_id DESC
"""


class Recorded(NamedTuple):
    """The positions of new reports, and of reports that were dropped for lack of room."""

    stored: set[int]
    dropped: set[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedRow:
    """Use of one job on one node without a lease; ``account`` is empty if none was named."""

    org_id: int
    unmatched_id: int
    account_id: int
    account: str
    job_id: str
    node: str
    state: int
    reservation_id: int
    first_at: int
    last_at: int
    decided_by: str
    decided_at: int
    note: str
    events: int
    used_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedFilter(OrgFilter):
    """Which rows to list."""

    state: int | None = None


UNMATCHED = OrgRows("unmatched_use", UnmatchedRow, "unmatched_id", query=LIST)


async def record(db: Connection, rows: Sequence[UsageRow]) -> Recorded:
    """Store reports; reports without a lease only as far as their org has room for them."""
    dropped, homeless = await _crowded_out(db, rows)
    kept = [place for place in range(len(rows)) if place not in dropped | homeless]
    stored = await usage_events.insert(db, [rows[place] for place in kept]) if kept else set()
    return Recorded({kept[place] for place in stored}, dropped)


async def try_record(db: Connection, rows: Sequence[UsageRow]) -> str:
    """Store reports; if the database refuses them, store none and return the reason."""
    try:
        async with db.transaction():
            await record(db, rows)
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
        return str(error)
    return ""


async def _crowded_out(db: Connection, rows: Sequence[UsageRow]) -> tuple[set[int], set[int]]:
    """Make rows for new use without a lease; the positions of events without room.

    They are counted as dropped. The second result has the positions of events of unknown orgs. An
    org's rows are counted under its lock, so two servers cannot exceed the bound.
    """
    groups: dict[Group, list[int]] = {}
    for position, row in enumerate(rows):
        if not row.reservation_id:
            group = (row.org_id, row.account_id, row.job_id, row.node)
            groups.setdefault(group, []).append(position)
    if not groups or not (new := await _new_groups(db, list(groups))):
        return set(), set()
    locked = {row["org_id"] for row in await db.fetch(LOCK, list({group[0] for group, *_ in new}))}
    new = await _new_groups(db, [group for group, *_ in new])
    dropped: set[int] = set()
    homeless: set[int] = set()
    for org_id in sorted({group[0] for group, *_ in new}):
        of_org = [each for each in new if each[0][0] == org_id]
        if org_id not in locked:
            homeless.update(place for group, *_ in of_org for place in groups[group])
            continue
        room = OPEN_MAX - await db.fetchval(WAITING, org_id, OPEN_MAX)
        matched = [each for each in of_org if each[2]]
        waiting = [each for each in of_org if not each[2]]
        await _insert(db, org_id, matched + waiting[:room])
        lost = [place for group, *_ in waiting[room:] for place in groups[group]]
        if lost:
            await db.execute(DROPPED, org_id, len(lost))
            dropped.update(lost)
    return dropped, homeless


async def _new_groups(db: Connection, groups: list[Group]) -> list[tuple[Group, str, int]]:
    """The groups without a row, each with the account's path and its only lease or 0."""
    found = await db.fetch(NEW, *(list(column) for column in zip(*groups, strict=True)))
    return [
        (
            groups[row["place"] - 1],
            row["path"] or "",
            row["reservation_id"] if row["leases"] == 1 else 0,
        )
        for row in found
    ]


async def _insert(db: Connection, org_id: int, new: list[tuple[Group, str, int]]) -> None:
    """Insert rows with the next numbers of an org: matched if there is a lease, else open."""
    if not new:
        return
    last: int = await db.fetchval(NUMBERS, org_id, len(new))
    await db.execute(
        INSERT,
        org_id,
        list(range(last - len(new) + 1, last + 1)),
        [group[1] for group, _, _ in new],
        [path for _, path, _ in new],
        [group[2] for group, _, _ in new],
        [group[3] for group, _, _ in new],
        [lease for _, _, lease in new],
    )


async def touch(db: Connection, since: int, until: int) -> None:
    """Update the time of each row's newest event."""
    await db.execute(TOUCH, since, until)


async def decide(
    db: Connection, row: UnmatchedRow, *, state: int, reservation_id: int, by: str, note: str
) -> None:
    """Store the decision about use without a lease."""
    await db.execute(
        "UPDATE unmatched_use SET state = $3, reservation_id = $4, decided_by = $5,"
        " decided_at = ledger_now(), note = $6 WHERE org_id = $1 AND unmatched_id = $2",
        row.org_id,
        row.unmatched_id,
        state,
        reservation_id,
        by,
        note,
    )
