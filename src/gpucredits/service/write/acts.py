"""The frame of everything that is done once for each idempotency key.

Owns: one transaction in which orgs are locked, the key is looked up and compared with what is
asked, and either the stored answer is replayed, or the work is done and its audit row and answer
are stored. Administrative acts and the keys of batches run in it. A batch of ledger commands stores
many keys in one transaction of its own; it compares each with ``recall``.
Must not: know what the work is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from gpucredits.core.reasons import Refused, account_unknown
from gpucredits.service.write.errors import KeyReused
from gpucredits.store.access import acts, audit
from gpucredits.store.access.acts import KeyRecord
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.database.errors import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Which org is acted upon, by whom in which call, and the key with a hash of what was asked.

    The key is bound in the org, and in those of ``also_binds``; the org and those of ``also_locks``
    are locked, unless the act says otherwise. A dry run does the work and takes it back.
    """

    org_id: int
    key: str | None = None
    fingerprint: bytes = b""
    dry_run: bool = False
    actor: str = ""
    request_id: str = ""
    also_locks: tuple[int, ...] = ()
    also_binds: tuple[int, ...] = ()
    locks: bool = True

    def note(self, action: str, resource: str, *, old: Any = None, new: Any = None) -> AuditNote:
        """The audit row of this act."""
        return AuditNote(self.actor, action, resource, self.request_id, old=old, new=new)


@dataclass(frozen=True, slots=True)
class Done:
    """The encoded answer, and whether it is the answer of an earlier call."""

    answer: bytes
    is_replay: bool = False


class ActRefused(Exception):  # noqa: N818  # it states what happened
    """The act is refused, and nothing of it was written down."""

    index: int | None = None  # of an item in a batch, which an act has not

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


Answer = TypeVar("Answer")
Work = Callable[[Connection], Awaitable[tuple[bytes, AuditNote | None]]]
AccountWork = Callable[[Connection, int], Awaitable[tuple[bytes, AuditNote | None]]]


async def perform(pool: Pool, act: Act, work: Work) -> Done:
    """Do the work once for each key; KeyReused, and nothing changed, for another request's key.

    A key that another transaction stored meanwhile fails the first attempt; the second sees it.
    """
    try:
        return await _attempt(pool, act, work)
    except Conflict:
        return await _attempt(pool, act, work)


async def perform_on(
    pool: Pool, act: Act, account: str, work: AccountWork, kind: type[Answer]
) -> tuple[Answer, bool]:
    """Do the work on an account; the answer, and whether it is that of an earlier call.

    Raises ActRefused where there is no such account.
    """

    async def found(db: Connection) -> tuple[bytes, AuditNote | None]:
        account_id = await acts.find_account(db, act.org_id, account)
        if account_id is None:
            raise ActRefused(account_unknown(account))
        return await work(db, account_id)

    done = await perform(pool, act, found)
    return msgspec.json.decode(done.answer, type=kind), done.is_replay


async def claim(pool: Pool, org_ids: Iterable[int], key: str, *, fingerprint: bytes) -> None:
    """Bind the key of a batch to the whole batch in several orgs, before any item is begun.

    The items are answered under keys of their own, so the batch's key has an empty answer. No org
    is locked: heartbeats must not wait for a batch over many orgs.
    """
    first, *others = sorted(set(org_ids))
    act = Act(org_id=first, key=key, fingerprint=fingerprint, also_binds=tuple(others), locks=False)
    await perform(pool, act, _nothing)


def item_key(key: str, fingerprint: bytes, position: int) -> str:
    """The key of one item of a batch. No key of a caller has a space in it.

    The batch's content is part of the key, so that records of an older batch under the same key
    never answer a new one.
    """
    return f"{key} {fingerprint.hex()[:16]} #{position}"


def recall(
    key: str, fingerprint: bytes, record: tuple[bytes, bytes] | None
) -> bytes | KeyReused | None:
    """The stored answer of a key, KeyReused where the key has another request, None if unused."""
    if record is None:
        return None
    request_hash, answer = record
    return answer if request_hash == fingerprint else KeyReused(key)


async def _attempt(pool: Pool, act: Act, work: Work) -> Done:
    async with session(pool) as db:
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
    if act.locks:
        await acts.lock_orgs(db, sorted({act.org_id, *act.also_locks}))
    unbound = [act.org_id, *act.also_binds]
    if act.key is not None:
        records = await acts.find_records(db, unbound, act.key)
        answers = [recall(act.key, act.fingerprint, each) for each in records.values()]
        for answer in answers:
            if isinstance(answer, KeyReused):
                raise answer
        unbound = [each for each in unbound if each not in records]
        if not unbound:
            return Done(records[act.org_id].outcome, is_replay=True)
    answer, note = await work(db)
    if note is not None:
        await audit.insert(db, act.org_id, [note])
    if act.key is not None:
        await acts.insert_records(db, unbound, act.key, KeyRecord(act.fingerprint, answer))
    return Done(answer)


async def _nothing(db: Connection) -> tuple[bytes, AuditNote | None]:
    del db
    return b"", None
