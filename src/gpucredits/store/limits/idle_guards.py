"""Rows of idle guards: the terms of an account, its own or those of an account above.

A guard that a key of a wider scope has set stands before those of narrower scopes, whichever was
there first. Among guards of one scope that of the nearest account counts.

Owns: the table idle_guards. Must not: decide who may set them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.account import lineage
from gpucredits.core.authority import Authority
from gpucredits.core.rules.leases.idle_guard import IdleTerms
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import TermsByAccount


@dataclass(frozen=True, slots=True)
class GuardRow:
    """Terms in force, whose they are, and the scope of the key that set them."""

    account: str
    terms: IdleTerms
    set_by: Authority


TERMS = TermsByAccount("idle_guards", IdleTerms, IdleTerms)
# Of the account itself and those above it: those of the widest scope first, then the nearest.
IN_FORCE = f"""
    SELECT a.path, g.set_by, {", ".join(f"g.{name}" for name in TERMS.columns)}
    FROM idle_guards g JOIN accounts a ON a.org_id = g.org_id AND a.account_id = g.account_id
    WHERE g.org_id = $1 AND a.path = ANY ($2::text[])
    ORDER BY g.set_by, length(a.path) DESC LIMIT 1
"""  # noqa: S608  # names of columns


async def find_guard(db: Connection, org_id: int, account: str) -> GuardRow | None:
    """The guard in force for an account; None: none is set."""
    row = await db.fetchrow(IN_FORCE, org_id, list(lineage(account)))
    if row is None:
        return None
    return GuardRow(row["path"], TERMS.terms_in(row), Authority(row["set_by"]))


async def set_guard(
    db: Connection, org_id: int, account_id: int, terms: IdleTerms, set_by: Authority
) -> None:
    """Replace the terms of an account."""
    await TERMS.set(db, org_id, account_id, terms, set_by=set_by)
