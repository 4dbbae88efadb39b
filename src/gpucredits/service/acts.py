"""Administrative acts beside the funnel: done once for each key, and recorded.

Owns: one transaction for the act, its idempotency record and its audit row; taking all of it
back for a dry run.
Must not: know what the acts are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpucredits.service.errors import KeyReused
from gpucredits.store import acts, audit
from gpucredits.store.audit import AuditNote
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import Conflict, driver_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Which org is acted upon, and the caller's key with a hash of what was asked."""

    org_id: int
    key: str | None = None
    fingerprint: bytes = b""
    dry_run: bool = False
    also_locks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The encoded answer, and whether it is the answer of an earlier call."""

    answer: bytes
    is_replay: bool = False


Work = Callable[[Connection], Awaitable[tuple[bytes, AuditNote | None]]]


async def perform(pool: Pool, act: Act, work: Work) -> Done:
    """Do the work once. Acts on one org take turns, so equal keys in flight meet here.

    What stood in the way of the first attempt, such as a batch that took the key, has the second
    see it.
    """
    try:
        return await _attempt(pool, act, work)
    except Conflict:
        return await _attempt(pool, act, work)


async def _attempt(pool: Pool, act: Act, work: Work) -> Done:
    with driver_errors():
        async with pool.acquire() as db:
            transaction = db.transaction()
            await transaction.start()
            try:
                done = await _once(db, act, work)
            except BaseException:
                await transaction.rollback()
                raise
            if act.dry_run:
                await transaction.rollback()
            else:
                await transaction.commit()
            return done


async def _once(db: Connection, act: Act, work: Work) -> Done:
    await acts.lock_orgs(db, sorted({act.org_id, *act.also_locks}))
    if act.key is not None:
        record = await acts.find_record(db, act.org_id, act.key)
        if record is not None:
            if record.request_hash != act.fingerprint:
                raise KeyReused(act.key)
            return Done(record.outcome, is_replay=True)
    answer, note = await work(db)
    if note is not None:
        await audit.insert(db, act.org_id, [note])
    if act.key is not None:
        await acts.insert_record(
            db, act.org_id, act.key, request_hash=act.fingerprint, outcome=answer
        )
    return Done(answer)
