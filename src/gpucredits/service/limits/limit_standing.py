"""How an account's limits stand now, its own and those of the accounts above it.

Owns: reading the rows that admission would be decided by, brought forward to now.
Must not: write, or speak SQL (store does).
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.account import Account, lineage, org_of
from gpucredits.core.book import Book
from gpucredits.core.rules.upkeep.roll import roll_due
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import snapshot
from gpucredits.store.ledger.orgs import find_org


@dataclass(frozen=True, slots=True)
class LimitStanding:
    """A book with the account and those above it, org first, as they are at ``now``."""

    book: Book
    account: Account
    above: tuple[Account, ...]
    now: int


async def read_standing(pool: Pool, path: str) -> LimitStanding | None:
    """An account with its limits and those above it; None if there is no such account."""
    async with snapshot(pool) as connection:
        org_id = await find_org(connection, org_of(path))
        if org_id is None:
            return None
        wanted = lineage(path)
        needs = Needs(
            orgs={org_id},
            paths={(org_id, each) for each in wanted},
            jobs={(org_id, path, "", "")},  # as admissions do, to see past windows too
        )
        cached = (await load(connection, needs))[org_id]
    book = cached.book
    if path not in book.paths:
        return None
    roll_due(book, cached.now)
    accounts = tuple(book.paths[each] for each in reversed(wanted))
    return LimitStanding(book, accounts[-1], accounts[:-1], cached.now)
