"""Policies of the reconciler, and terms of lost work: read for an account, set and ended.

Owns: which account's terms govern an account: its own, else those of the nearest account above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import msgspec

from gpucredits.core.change import Named, merged
from gpucredits.core.money import format_credits
from gpucredits.core.reconciliation.comparison import Mode, ReconcilePolicy, paths_above
from gpucredits.core.reconciliation.lost_work import LossTerms
from gpucredits.service.write.acts import Act, perform_on
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.database.org_rows import TermsByAccount
from gpucredits.store.reconciliation.comparisons import POLICIES
from gpucredits.store.reconciliation.lost_work import LOSS_TERMS

__all__ = ["LossTerms", "Mode", "ReconcilePolicy"]

Terms = TypeVar("Terms")


@dataclass(frozen=True, slots=True)
class InheritedTerms(Generic[Terms]):
    """Terms that an account has of its own or inherits; ``audit`` names them in the audit log."""

    rows: TermsByAccount[Terms]
    audit: str
    shown: Callable[[Any], dict[str, Any]]

    async def read(self, pool: Pool, org_id: int, account: str) -> tuple[Terms, str]:
        """The terms that govern an account, and the account that has them, or ""."""
        async with session(pool) as db:
            return await self.governing(db, org_id, account)

    async def governing(self, db: Connection, org_id: int, account: str) -> tuple[Terms, str]:
        """As ``read``, in a transaction."""
        paths = paths_above(account)
        own = await self.rows.at(db, org_id, list(paths))
        path = next((each for each in paths if each in own), "")
        return (own[path] if path else self.rows.kind()), path

    async def set(
        self, pool: Pool, act: Act, account: str, wanted: Terms, named: Named
    ) -> tuple[Terms, bool]:
        """Set an account's terms, or the named ones; also whether this key had done so before."""

        async def work(db: Connection, account_id: int) -> tuple[bytes, AuditNote | None]:
            before = await self.rows.of(db, act.org_id, account_id)
            terms = merged(wanted, before or self.rows.kind(), named)
            await self.rows.set(db, act.org_id, account_id, terms)
            old = None if before is None else self.shown(before)
            note = act.note(f"{self.audit}.set", account, old=old, new=self.shown(terms))
            return msgspec.json.encode(terms), note

        return await perform_on(pool, act, account, work, self.rows.kind)

    async def end(self, pool: Pool, act: Act, account: str) -> tuple[tuple[Terms, str], bool]:
        """End an account's own terms; the terms that govern then, and as for ``set``."""

        async def work(db: Connection, account_id: int) -> tuple[bytes, AuditNote | None]:
            before = await self.rows.of(db, act.org_id, account_id)
            await self.rows.end(db, act.org_id, account_id)
            after = msgspec.json.encode(await self.governing(db, act.org_id, account))
            if before is None:
                return after, None
            return after, act.note(f"{self.audit}.end", account, old=self.shown(before))

        kind: Any = tuple[self.rows.kind, str]  # type: ignore[name-defined]  # a type at run time
        return await perform_on(pool, act, account, work, kind)


def shown_policy(policy: ReconcilePolicy) -> dict[str, Any]:
    """What the audit log says of a policy."""
    told = {"mode": policy.mode.name.lower(), "alarm_floor": format_credits(policy.alarm_floor)}
    return asdict(policy) | told


POLICY = InheritedTerms(POLICIES, "reconcile_policy", shown_policy)
LOSS = InheritedTerms(LOSS_TERMS, "loss_terms", asdict)
