"""Refunds of lost work: a claim is judged and kept, then its refund is posted once.

The claim is stored under the org's lock before the ledger posts anything. So two claims of one job
cannot both use its cap. The refund has a key derived from the claim, and the rule refunds a lease
once at most. If a server dies between the two steps, the reconciler finishes the claim.

Owns: the order of the steps.
Must not: judge (core does), or speak SQL (store does).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec

from gpucredits.core import ids
from gpucredits.core.bounds import MINUTE_US
from gpucredits.core.outcome import LostWorkRefunded
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused
from gpucredits.core.reconciliation.commands import RefundLostWork
from gpucredits.core.reconciliation.lost_work import (
    ACCOUNT_DAYS,
    Cause,
    LossEvidence,
    judge_loss,
)
from gpucredits.core.reservation import as_the_clock_left
from gpucredits.service.reconciliation.terms import LOSS
from gpucredits.service.write.acts import Act, ActRefused, perform
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.database.org_rows import OrgFilter
from gpucredits.store.outages import read_outages
from gpucredits.store.reconciliation import lost_work, measured_use
from gpucredits.store.reconciliation.lost_work import CLAIMS, REFUNDED, REFUSED, LostRow

__all__ = ["Cause", "LostRow", "OrgFilter", "claim", "list_claims", "report_checkpoint"]

LEFT_TO_SERVER_US = MINUTE_US


async def report_checkpoint(
    pool: Pool, org_id: int, reservation_id: int, checkpoint_ms: int, *, dry_run: bool
) -> int | None:
    """Note a checkpoint of a live lease; the latest one, or None if the lease has ended."""
    async with session(pool) as db:
        transaction = db.transaction()
        await transaction.start()
        told = await lost_work.report_checkpoint(db, org_id, reservation_id, checkpoint_ms)
        await (transaction.rollback() if dry_run else transaction.commit())
        return told


async def claim(
    ledger: Ledger,
    act: Act,
    reservation_id: int,
    cause: Cause,
    claimed_ms: int | None,
    note: str,
) -> tuple[LostRow, bool]:
    """Give back an ended lease's lost work; also whether this key had done so before."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        row = await judged(db, act, reservation_id, cause, claimed_ms, note)
        if isinstance(row, Refused):
            raise ActRefused(row)
        await lost_work.insert(db, row)
        text = ids.format_id(ids.RESERVATION, act.org_id, reservation_id)
        new = {
            "cause": cause.name.lower(),
            "checkpoint_ms": row.checkpoint_ms,
            "is_reported": row.is_reported,
            "limit_ms": row.limit_ms,
            "note": note,
        }
        return msgspec.json.encode(row), act.note("lost_work.claim", text, new=new)

    done = await perform(ledger.pool, act, work)
    row = msgspec.json.decode(done.answer, type=LostRow)
    outcome = await carry_out(ledger, row, dry_run=act.dry_run)
    if isinstance(outcome, Refused):
        raise ActRefused(outcome)
    return outcome, done.is_replay


async def judged(
    db: Connection,
    act: Act,
    reservation_id: int,
    cause: Cause,
    claimed_ms: int | None,
    note: str,
) -> LostRow | Refused:
    """The claim that the account's terms and the evidence allow, or the refusal."""
    org_id = act.org_id
    stored = await measured_use.read_lease(db, org_id, reservation_id)
    if stored is None:
        return LEASE_UNKNOWN
    now = await read_clock(db)
    lease = as_the_clock_left(stored, await read_outages(db), now)
    known = await CLAIMS.find(db, org_id, reservation_id)
    if lease.lost_ms or (known is not None and known.state != REFUSED):
        return Refused(Reason.LOSS_REFUNDED, "Lost work of this reservation was given back before.")
    terms, owner = await LOSS.governing(db, org_id, lease.account)
    evidence = LossEvidence(
        cause=cause,
        reported_ms=await lost_work.reported_checkpoint(db, org_id, reservation_id),
        claimed_ms=claimed_ms,
        node_lived=await lost_work.node_lived(db, org_id, lease),
        job_ms=await lost_work.given_back_ms(db, org_id, lease),
        account_ms=await lost_work.given_to_account_ms(
            db, org_id, owner, reservation_id, days=ACCOUNT_DAYS
        ),
        owner=owner,
    )
    loss = judge_loss(lease, terms, evidence, now)
    if isinstance(loss, Refused):
        return loss
    return LostRow(
        org_id=org_id,
        reservation_id=reservation_id,
        account_id=lease.account_id,
        account=lease.account,
        job_id=lease.job_id,
        cause=int(cause),
        checkpoint_ms=loss.checkpoint_ms,
        is_reported=loss.is_reported,
        limit_ms=loss.limit_ms,
        claimed_by=act.actor,
        note=note,
    )


async def carry_out(ledger: Ledger, row: LostRow, *, dry_run: bool = False) -> LostRow | Refused:
    """Post the refund of a claim once, and store the outcome."""
    outcome = await ledger.submit(row.org_id, request_of(row), dry_run=dry_run)
    state, lost_ms, amount = REFUSED, 0, 0
    if isinstance(outcome, LostWorkRefunded):
        state, lost_ms, amount = REFUNDED, outcome.lost_ms, outcome.amount
    if not dry_run:
        async with session(ledger.pool) as db:
            await lost_work.decide(db, row, state, lost_ms, amount)
    if isinstance(outcome, Refused):
        return outcome
    return replace(row, state=state, lost_ms=lost_ms, amount=amount)


def request_of(row: LostRow) -> Request:
    """The request for a claim's refund, with a key derived from the claim."""
    text = ids.format_id(ids.RESERVATION, row.org_id, row.reservation_id)
    key = f"lost-work {text} {row.checkpoint_ms} {row.limit_ms}"  # no caller's key has a space
    command = RefundLostWork(
        reservation_id=row.reservation_id,
        checkpoint_ms=row.checkpoint_ms,
        limit_ms=row.limit_ms,
    )
    return Request(command, key, hashlib.sha256(key.encode()).digest(), SYSTEM, text)


async def carry_on(ledger: Ledger, *, limit: int) -> int:
    """Finish claims whose server died between the two steps; the number of claims."""
    async with session(ledger.pool) as db:
        rows = await lost_work.undecided(db, older_than_us=LEFT_TO_SERVER_US, limit=limit)
    for row in rows:
        await carry_out(ledger, row)
    return len(rows)


async def list_claims(pool: Pool, which: OrgFilter) -> list[LostRow]:
    """Claims of lost work, the newest lease first."""
    async with session(pool) as db:
        return await CLAIMS.page(db, which)
