"""Rows of leases with measured use, and of their comparisons with the bills.

Owns: the rows of reconciliations, reconcile_progress and reconcile_policies. New events make their
lease due; a pass claims due leases, so that two servers seldom compare the same one.
Must not: compare anything, or move money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpucredits.core.bounds import DAY_US, MINUTE_US, NEVER_US, SECOND_US
from gpucredits.core.reconciliation.comparison import (
    QUIET_MS_DEFAULT,
    Comparison,
    Mode,
    ReconcilePolicy,
)
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgFilter, OrgRows, TermsByAccount
from gpucredits.store.database.where import Where

WAITING, AGREES, DIFFERS, POSTED, UNMEASURED, FINAL = range(6)
OVERLAP_US: Final = MINUTE_US  # events are looked at again, since some commit later than others
STEP_US: Final = 30 * SECOND_US  # of events that are looked at in one transaction
CLAIM_US: Final = MINUTE_US  # how long a claimed lease is left to whoever claimed it

PLACE = "SELECT seen_to FROM reconcile_progress FOR UPDATE SKIP LOCKED"
BEGIN = "INSERT INTO reconcile_progress (seen_to) VALUES (0) ON CONFLICT DO NOTHING"
FOLLOWING = "SELECT min(recorded_at), ledger_now() FROM usage_events WHERE recorded_at > $1"
NOTE_LEASES = """
INSERT INTO reconciliations AS c (org_id, reservation_id, account_id, account, job_id, seen_at,
    due_at)
SELECT r.org_id, r.reservation_id, r.account_id, r.account, r.job_id, f.seen_at,
    greatest(f.seen_at, CASE r.state WHEN 0 THEN r.expires_at ELSE r.ended_at END)
        + coalesce(p.quiet_ms * 1000, $3)
FROM (
    SELECT e.org_id, coalesce(u.reservation_id, e.reservation_id) AS reservation_id,
        max(e.recorded_at) AS seen_at
    FROM usage_events e
    LEFT JOIN unmatched_use u ON u.org_id = e.org_id AND u.account_id = e.account_id
        AND u.job_id = e.job_id AND u.node = e.node AND u.state = 1 AND e.reservation_id = 0
    WHERE e.recorded_at > $1 AND e.recorded_at <= $2 GROUP BY 1, 2
) AS f
JOIN reservations r ON r.org_id = f.org_id AND r.reservation_id = f.reservation_id
LEFT JOIN LATERAL (
    SELECT o.quiet_ms FROM reconcile_policies o
    JOIN accounts a ON a.org_id = o.org_id AND a.account_id = o.account_id
    WHERE o.org_id = r.org_id AND (a.path = r.account OR starts_with(r.account, a.path || '/'))
    ORDER BY length(a.path) DESC LIMIT 1
) AS p ON true
ORDER BY r.org_id, r.reservation_id
ON CONFLICT (org_id, reservation_id) DO UPDATE SET seen_at = excluded.seen_at,
    due_at = excluded.due_at
WHERE c.seen_at < excluded.seen_at
"""
CLAIM = """
UPDATE reconciliations c SET due_at = ledger_now() + [span]
FROM (
    SELECT org_id, reservation_id FROM reconciliations
    WHERE [where] ORDER BY due_at LIMIT [limit] FOR UPDATE SKIP LOCKED
) AS d
WHERE c.org_id = d.org_id AND c.reservation_id = d.reservation_id
RETURNING c.org_id, c.reservation_id, c.seen_at
"""
POSTPONE = """
UPDATE reconciliations c SET due_at = greatest(r.expires_at, ledger_now()) + d.quiet_us
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS d (org_id, reservation_id, quiet_us)
JOIN reservations r ON r.org_id = d.org_id AND r.reservation_id = d.reservation_id
WHERE c.org_id = d.org_id AND c.reservation_id = d.reservation_id
"""
SAVE = """
UPDATE reconciliations c SET state = n.state, ended_at = n.ended_at, checked_at = ledger_now(),
    events = n.events, used_ms = n.used_ms, measured_ms = n.measured_ms, beyond_ms = n.beyond_ms,
    settled = n.settled, cost = n.cost, reconciled = n.reconciled, is_attested = n.is_attested,
    due_at = CASE WHEN c.seen_at = n.seen_at THEN $14 ELSE c.due_at END
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
    $13::boolean[]) AS n (org_id, reservation_id, seen_at, state, ended_at, events, used_ms,
    measured_ms, beyond_ms, settled, cost, reconciled, is_attested)
WHERE c.org_id = n.org_id AND c.reservation_id = n.reservation_id
"""
DAY = """
SELECT count(*) AS leases, coalesce(sum(abs(cost - settled)), 0)::bigint AS drift,
    coalesce(sum(settled), 0)::bigint AS settled,
    coalesce(sum(greatest(cost, settled)), 0)::bigint AS bill,
    coalesce(sum(used_ms), 0)::bigint AS used_ms,
    coalesce(sum(measured_ms), 0)::bigint AS measured_ms,
    coalesce(sum(cost), 0)::bigint AS cost,
    coalesce(sum(reconciled), 0)::bigint AS reconciled
FROM reconciliations
WHERE org_id = $1 AND account_id = $2 AND ended_at >= $3 AND ended_at < $4
    AND state IN (1, 2, 3, 5) AND (state <> 1 OR abs(measured_ms - used_ms) > $5)
"""
BILL_OF_DAY = """
SELECT coalesce(sum(greatest(cost, settled)), 0)::bigint FROM reconciliations
WHERE org_id = $1 AND account_id = $2 AND ended_at >= $3 AND ended_at < $4
    AND state IN (1, 2, 3, 5)
"""
STATUS = """
SELECT coalesce((SELECT seen_to FROM reconcile_progress), 0) AS seen_to,
    (SELECT count(*) FROM reconciliations WHERE due_at < 4611686018427387904) AS waiting,
    (SELECT count(*) FROM reconciliations WHERE due_at <= ledger_now()) AS due,
    (SELECT count(*) FROM drift_alarms WHERE is_open) AS open_alarms,
    (SELECT count(*) FROM unmatched_use WHERE state = 0) AS unmatched,
    (SELECT coalesce(sum(events), 0)::bigint FROM unmatched_drops) AS dropped,
    (SELECT count(*) FROM lost_work WHERE state = 0) AS claims
"""


class DueLease(NamedTuple):
    """A lease claimed by a pass, with the time when its newest event was stored."""

    org_id: int
    reservation_id: int
    seen_at: int


def _policy(mode: int, **terms: int) -> ReconcilePolicy:
    return ReconcilePolicy(Mode(mode), **terms)


POLICIES = TermsByAccount("reconcile_policies", ReconcilePolicy, _policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The leases for a pass: due ones, or all with new events (``at_once``).

    ``again`` adds leases that differed and were not posted.
    """

    org_id: int | None = None
    scope: str = ""
    at_once: bool = False
    again: bool = False
    limit: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The comparison of a lease, and the state it led to."""

    due: DueLease
    state: int
    ended_at: int
    events: int
    is_attested: bool
    found: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """A lease with its last comparison."""

    org_id: int
    reservation_id: int
    account: str
    job_id: str
    state: int
    ended_at: int
    checked_at: int
    events: int
    used_ms: int
    measured_ms: int
    beyond_ms: int
    settled: int
    cost: int
    reconciled: int
    due_at: int
    is_attested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFilter(OrgFilter):
    """Which comparisons to list."""

    state: int | None = None


COMPARED = OrgRows("reconciliations", ComparedRow, "reservation_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySums:
    """The sums of an account's leases that ended on one day and did not agree."""

    leases: int
    drift: int
    settled: int
    bill: int
    used_ms: int
    measured_ms: int
    cost: int
    reconciled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerCounts:
    """The reconciler's progress, and what waits for people."""

    seen_to: int
    waiting: int
    due: int
    open_alarms: int
    unmatched: int
    dropped: int
    claims: int


async def next_events(db: Connection) -> tuple[int, int, bool] | None:
    """The time span of events to look at next, and whether there are later events.

    The progress is locked until the transaction ends; None if another server holds it.
    """
    place = await db.fetchval(PLACE)
    if place is None:
        await db.execute(BEGIN)
        place = await db.fetchval(PLACE)
        if place is None:
            return None
    following, now = await db.fetchrow(FOLLOWING, place)
    until = now if following is None else min(following + STEP_US, now)
    return max(place - OVERLAP_US, 0), until, until < now


async def note_events(db: Connection, since: int, until: int) -> None:
    """Make the leases of new events due, and move the progress on."""
    await db.execute(NOTE_LEASES, since, until, QUIET_MS_DEFAULT * 1_000)
    await db.execute("UPDATE reconcile_progress SET seen_to = greatest(seen_to, $1)", until)


async def make_due(db: Connection, org_id: int, reservation_id: int) -> None:
    """Make a lease due, so that the next pass compares it, even if it was compared before."""
    await db.execute(
        "INSERT INTO reconciliations AS c (org_id, reservation_id, account_id, account, job_id,"
        " seen_at, due_at) SELECT org_id, reservation_id, account_id, account, job_id,"
        " ledger_now(), ledger_now() FROM reservations WHERE org_id = $1 AND reservation_id = $2"
        " ON CONFLICT (org_id, reservation_id) DO UPDATE SET due_at = excluded.due_at,"
        " seen_at = excluded.seen_at",
        org_id,
        reservation_id,
    )


async def claim(db: Connection, wanted: Wanted) -> list[DueLease]:
    """Claim due leases; if this server dies, a later pass claims them again."""
    where = Where()
    ready = "due_at < 4611686018427387904" if wanted.at_once else "due_at <= ledger_now()"
    if wanted.again:
        ready = f"({ready} OR (state IN (0, 2) AND due_at = 4611686018427387904))"
    where.add(ready)
    if wanted.org_id is not None:
        where.add("org_id = {}", wanted.org_id)
    if wanted.scope:
        where.under("account", wanted.scope)
    places = {"span": where.value(CLAIM_US), "limit": where.value(wanted.limit)}
    rows = await db.fetch(where.into(CLAIM, **places), *where.values)
    return [DueLease(*row) for row in rows]


async def postpone(db: Connection, leases: Sequence[tuple[DueLease, int]]) -> None:
    """Put off active leases until they have ended and were quiet, each for its own time."""
    if leases:
        await db.execute(
            POSTPONE,
            [due.org_id for due, _ in leases],
            [due.reservation_id for due, _ in leases],
            [quiet_ms * 1_000 for _, quiet_ms in leases],
        )


async def save(db: Connection, compared: Sequence[Verdict]) -> None:
    """Store comparisons; a lease with events since its claim stays due."""
    if not compared:
        return
    rows = [
        (
            *(each.due.org_id, each.due.reservation_id, each.due.seen_at),
            *(each.state, each.ended_at, each.events),
            *(each.found.used_ms, each.found.measured_ms, each.found.beyond_ms),
            *(each.found.settled, each.found.cost, each.found.reconciled),
            each.is_attested,
        )
        for each in compared
    ]
    await db.execute(SAVE, *(list(column) for column in zip(*rows, strict=True)), NEVER_US)


async def day_of(
    db: Connection, org_id: int, account_id: int, at: int, tolerance_ms: int
) -> tuple[int, DaySums]:
    """The start of a day, and the drift of an account's leases that ended on it."""
    start = at - at % DAY_US
    place = (org_id, account_id, start, start + DAY_US)
    sums = dict(await db.fetchrow(DAY, *place, tolerance_ms))
    sums["bill"] = await db.fetchval(BILL_OF_DAY, *place)
    return start, DaySums(**sums)


async def read_counts(db: Connection) -> ReconcilerCounts:
    """Count the reconciler's progress."""
    return ReconcilerCounts(**dict(await db.fetchrow(STATUS)))
