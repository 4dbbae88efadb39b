"""Rows of claims of lost work, and of the checkpoints that prove them.

Owns: the rows of lost_work, checkpoints and loss_terms.
Must not: judge a claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.bounds import DAY_US
from gpucredits.core.reconciliation.lost_work import LossTerms
from gpucredits.core.reservation import Reservation
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgRows, TermsByAccount
from gpucredits.store.database.where import Where

CLAIMED, REFUNDED, REFUSED = range(3)
# Another lease on the node, admitted before this one ended, that was reported or settled later.
NODE_LIVED = """
SELECT EXISTS (
    SELECT FROM reservations r
    WHERE r.org_id = $1 AND r.node = $2 AND r.node <> '' AND r.reservation_id <> $3
        AND r.admitted_at < $4 AND $4 < CASE r.state WHEN 1 THEN r.ended_at
            ELSE lease_beat_at(r.beat_at, r.expires_at, r.window_ms, r.escrow_windows,
                r.extended_ms + r.reprieve_ms) END)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRow:
    """A claim for one lease, and its outcome."""

    org_id: int
    reservation_id: int
    account_id: int
    account: str
    job_id: str
    cause: int
    checkpoint_ms: int
    is_reported: bool
    limit_ms: int
    state: int = CLAIMED
    lost_ms: int = 0
    amount: int = 0
    claimed_by: str = ""
    claimed_at: int = 0
    note: str = ""


CLAIMS = OrgRows("lost_work", LostRow, "reservation_id")
LOSS_TERMS = TermsByAccount("loss_terms", LossTerms, LossTerms)


async def report_checkpoint(
    db: Connection, org_id: int, reservation_id: int, checkpoint_ms: int
) -> int | None:
    """Store a checkpoint of a live lease; the latest one, or None if the lease has ended."""
    told: int | None = await db.fetchval(
        "INSERT INTO checkpoints AS c (org_id, reservation_id, checkpoint_ms, reported_at)"
        " SELECT org_id, reservation_id,"
        " least($3::bigint, (ledger_now() - admitted_at) / 1000), ledger_now() FROM reservations"
        " WHERE org_id = $1 AND reservation_id = $2 AND state = 0 AND expires_at > ledger_now()"
        " ON CONFLICT (org_id, reservation_id) DO UPDATE SET"
        " checkpoint_ms = greatest(c.checkpoint_ms, excluded.checkpoint_ms),"
        " reported_at = CASE WHEN excluded.checkpoint_ms > c.checkpoint_ms"
        " THEN excluded.reported_at ELSE c.reported_at END RETURNING checkpoint_ms",
        org_id,
        reservation_id,
        checkpoint_ms,
    )
    return told


async def reported_checkpoint(db: Connection, org_id: int, reservation_id: int) -> int | None:
    """The last checkpoint that was reported while a lease ran."""
    told: int | None = await db.fetchval(
        "SELECT checkpoint_ms FROM checkpoints WHERE org_id = $1 AND reservation_id = $2",
        org_id,
        reservation_id,
    )
    return told


async def node_lived(db: Connection, org_id: int, lease: Reservation) -> bool:
    """Whether the node of a lease reported after the lease had ended."""
    found: bool = await db.fetchval(
        NODE_LIVED, org_id, lease.node, lease.reservation_id, lease.ended_at
    )
    return found


async def given_back_ms(db: Connection, org_id: int, lease: Reservation) -> int:
    """The use refunded, or about to be, for other leases of the job."""
    total: int = await db.fetchval(
        "SELECT coalesce(sum(CASE state WHEN 0 THEN limit_ms ELSE lost_ms END), 0)::bigint"
        " FROM lost_work WHERE org_id = $1 AND account_id = $2 AND job_id = $3"
        " AND reservation_id <> $4",
        org_id,
        lease.account_id,
        lease.job_id,
        lease.reservation_id,
    )
    return total


async def given_to_account_ms(
    db: Connection, org_id: int, owner: str, reservation_id: int, *, days: int
) -> int:
    """The use refunded, or about to be, to an account and all below it within some days."""
    total: int = await db.fetchval(
        "SELECT coalesce(sum(CASE state WHEN 0 THEN limit_ms ELSE lost_ms END), 0)::bigint"
        " FROM lost_work WHERE org_id = $1 AND claimed_at > ledger_now() - $4::bigint"
        " AND (account = $2 OR starts_with(account, $2 || '/')) AND reservation_id <> $3",
        org_id,
        owner,
        reservation_id,
        days * DAY_US,
    )
    return total


async def insert(db: Connection, row: LostRow) -> None:
    """Store a claim before its refund is posted; a refused claim is replaced."""
    await db.execute(
        "INSERT INTO lost_work (org_id, reservation_id, account_id, account, job_id, cause,"
        " checkpoint_ms, is_reported, limit_ms, state, lost_ms, amount, claimed_by, claimed_at,"
        " note) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, $10, ledger_now(), $11)"
        " ON CONFLICT (org_id, reservation_id) DO UPDATE SET cause = excluded.cause,"
        " checkpoint_ms = excluded.checkpoint_ms, is_reported = excluded.is_reported,"
        " limit_ms = excluded.limit_ms, state = 0, claimed_by = excluded.claimed_by,"
        " claimed_at = excluded.claimed_at, note = excluded.note",
        row.org_id,
        row.reservation_id,
        row.account_id,
        row.account,
        row.job_id,
        row.cause,
        row.checkpoint_ms,
        row.is_reported,
        row.limit_ms,
        row.claimed_by,
        row.note,
    )


async def decide(db: Connection, row: LostRow, state: int, lost_ms: int, amount: int) -> None:
    """Store the outcome of a claim."""
    await db.execute(
        "UPDATE lost_work SET state = $3, lost_ms = $4, amount = $5"
        " WHERE org_id = $1 AND reservation_id = $2 AND state = 0",
        row.org_id,
        row.reservation_id,
        state,
        lost_ms,
        amount,
    )


async def undecided(db: Connection, *, older_than_us: int, limit: int) -> list[LostRow]:
    """Claims without an outcome: their server may have died."""
    where = Where()
    where.add("state = 0")
    where.add("claimed_at < ledger_now() - {}", older_than_us)
    return await CLAIMS.such(db, where, limit=limit)
