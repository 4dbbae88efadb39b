"""Setting and ending idle guards as administrative acts, and reading the guard in force.

Owns: the right to change a guard: only keys of the scope that set the guard in force, or wider.
Must not: judge jobs (core does, on the nodes), or speak SQL (store does).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import msgspec

from gpucredits.core.authority import Authority, refuse_from_below, scope_word
from gpucredits.core.change import Named, merged
from gpucredits.core.reasons import account_unknown
from gpucredits.core.rules.leases.idle_guard import IdleTerms
from gpucredits.service.write.acts import Act, ActRefused, perform_on
from gpucredits.store.access import acts
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.limits.idle_guards import TERMS, GuardRow, find_guard, set_guard

__all__ = ["GuardRow"]

BOUND: Final = "The idle guard"
INSTEAD: Final = "Ask the holder of such a key to change it."


async def read_guard(pool: Pool, org_id: int, account: str) -> GuardRow | None:
    """The guard in force for an account; None if there is none."""
    async with session(pool) as db:
        if await acts.find_account(db, org_id, account) is None:
            raise ActRefused(account_unknown(account))
        return await find_guard(db, org_id, account)


async def change_guard(
    pool: Pool,
    act: Act,
    account: str,
    wanted: IdleTerms | None,
    *,
    by: Authority,
    named: Named = None,
) -> tuple[GuardRow | None, bool]:
    """Set the guard of an account; None ends it, so that the account inherits again.

    Terms that are not named stay as in the guard in force, which may be inherited. Returns the
    guard in force then, and whether this key had done so before.
    """

    async def work(db: Connection, account_id: int) -> tuple[bytes, AuditNote | None]:
        before = await find_guard(db, act.org_id, account)
        if before is not None:
            refused = refuse_from_below(by, before.set_by, account, BOUND, INSTEAD)
            if refused:
                raise ActRefused(refused)
        terms = None
        if wanted is None:
            await TERMS.end(db, act.org_id, account_id)
        else:
            terms = merged(wanted, None if before is None else before.terms, named)
            await set_guard(db, act.org_id, account_id, terms, by)
        own = before if before is not None and before.account == account else None
        note = act.note(
            "idle_guard.end" if wanted is None else "idle_guard.set",
            account,
            old=None if own is None else shown(own.terms, own.set_by),
            new=None if terms is None else shown(terms, by),
        )
        return msgspec.json.encode(await find_guard(db, act.org_id, account)), note

    kind: Any = GuardRow | None
    return await perform_on(pool, act, account, work, kind)


def shown(terms: IdleTerms, set_by: Authority) -> dict[str, Any]:
    """A guard as the audit log shows it."""
    return {**asdict(terms), "set_by_scope": scope_word(set_by)}
