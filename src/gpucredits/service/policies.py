"""Limits, budgets and quotas: kept and given back as they are."""

from __future__ import annotations

from typing import Any

from gpucredits.service.acts import Act, perform
from gpucredits.store import acts, settings
from gpucredits.store.audit import AuditNote
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import driver_errors
from gpucredits.store.settings import SettingsRow


class AccountMissing(Exception):  # noqa: N818  # it states what happened
    """There is no account at the path."""


async def read_policy(pool: Pool, *, org_id: int, account: str, kind: str) -> SettingsRow:
    """The document of an account; an empty one when none was set."""
    with driver_errors():
        async with pool.acquire() as db:
            account_id = await acts.find_account(db, org_id, account)
            if account_id is None:
                raise AccountMissing(account)
            return await settings.load(db, org_id=org_id, account_id=account_id, kind=kind)


async def set_policy(  # the document, where it goes, and who puts it there
    pool: Pool,
    act: Act,
    *,
    account: str,
    kind: str,
    document: dict[str, Any],
    actor: str,
    request_id: str,
) -> tuple[SettingsRow, bool]:
    """Replace the document of an account; also whether that was done before."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        account_id = await acts.find_account(db, act.org_id, account)
        if account_id is None:
            raise AccountMissing(account)
        before = await settings.load(db, org_id=act.org_id, account_id=account_id, kind=kind)
        after = await settings.save(
            db, org_id=act.org_id, account_id=account_id, kind=kind, document=document
        )
        note = AuditNote(
            actor, f"{kind}.set", account, request_id, old=before.document, new=after.document
        )
        return settings.encode_document(after), note

    done = await perform(pool, act, work)
    return settings.decode_row(done.answer), done.is_replay
