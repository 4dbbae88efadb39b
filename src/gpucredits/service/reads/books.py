"""Reads: the answers that a write would see now, and those of the past.

Owns: bringing what is read forward to now with the same rule that writes use, so that no answer
depends on a sweeper.
Must not: write, or speak SQL (store does).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from gpucredits.core.account import Account, Funding, Model, lineage, org_of
from gpucredits.core.book import Book
from gpucredits.core.decide import roll
from gpucredits.core.entry import moves_of
from gpucredits.core.grant import Grant, GrantState, seen_at
from gpucredits.core.reservation import Reservation
from gpucredits.core.rules.credit.funding import chain_of
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import snapshot
from gpucredits.store.ledger.accounts import AccountFilter, list_accounts, sum_pending, sum_tree
from gpucredits.store.ledger.entries import EntryFilter, EntryRow, list_entries
from gpucredits.store.ledger.grants import GrantFilter, list_grants
from gpucredits.store.ledger.history import Buckets, sums_at
from gpucredits.store.ledger.orgs import find_org, moment_of
from gpucredits.store.ledger.reservations import ReservationFilter, list_reservations
from gpucredits.store.ledger.topups import TopUpFilter, list_topups
from gpucredits.store.ledger.transfers import TransferFilter, TransferRow, list_transfers

ACCOUNTS_AT_ONCE = 500
TREE_ACCOUNTS_MAX = 10_000


class TreeTooLarge(Exception):  # noqa: N818  # it states what happened
    """An account has more accounts below it than are read one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """An account's buckets, or a subtree's, as of an instant.

    Grants that have not started, the house's cover, the credit limit of a postpaid account, and
    spendable credits are known for now only; for the past they are None. ``through`` has the
    spendable credits of accounts above whose credits the account may spend.
    """

    path: str
    available: int
    reserved: int
    spent: int
    pending: int | None = None
    overrun: int | None = None
    credit_limit: int | None = None
    version: int = 0
    as_of: int
    funding: Funding | None = None
    spendable: int | None = None
    through: tuple[tuple[str, int], ...] | None = None


class Reads:
    """Everything that can be asked. An account or org that does not exist gives None."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    async def account(self, path: str) -> Account | None:
        """An account as it stands now."""
        async with self._book(path) as (_, cached):
            account = cached.book.paths.get(path) if cached else None
            if cached and account:
                roll(cached.book, account, cached.now)
            return account

    async def balance(
        self,
        path: str,
        *,
        at: int | None = None,
        known_at: int | None = None,
        tree: bool = False,
    ) -> Balance | None:
        """The balance now, or at a past instant.

        Only the clock makes entries that take effect before they are recorded, and what it makes
        true is known from that instant on, swept or not: what had taken effect by an instant is
        what was known then, and the earlier of ``at`` and ``known_at`` counts.
        """
        async with self._book(path) as (connection, cached):
            account = cached.book.paths.get(path) if cached else None
            if cached is None or account is None:
                return None
            asked = [instant for instant in (at, known_at) if instant is not None]
            if asked:
                return await self._past(connection, cached, account, min(asked), tree=tree)
            if tree:
                return await self._tree(connection, cached, path)
            chain = chain_of(cached.book, account)
            for each in chain:
                roll(cached.book, each, cached.now)
            return Balance(
                path=path,
                available=account.available,
                reserved=account.reserved,
                spent=account.spent,
                pending=pending(cached.book, account),
                overrun=account.overrun,
                credit_limit=account.credit_limit if account.model is Model.POSTPAID else None,
                version=account.version,
                as_of=cached.now,
                funding=account.funding,
                spendable=account.spendable,
                through=tuple((each.path, each.spendable) for each in chain[1:]),
            )

    async def accounts(self, org: str, wanted: AccountFilter) -> list[Account]:
        """Accounts of an org in order of path, each as it stands now."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org)
            if org_id is None:
                return []
            now = await moment_of(connection, org_id)
            listed = await list_accounts(connection, org_id, wanted)
            due = [account.account_id for account in listed if account.due_at <= now]
            rolled = {
                account.account_id: account
                for cached in await self._books(connection, org_id, due)
                for account in roll_all(cached, now)
            }
        return [rolled.get(account.account_id, account) for account in listed]

    async def grants(self, org: str, wanted: GrantFilter) -> list[tuple[Grant, str]]:
        """Grants with their accounts' paths, each as it stands now."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org)
            return [] if org_id is None else await self._grants(connection, org_id, wanted)

    async def grant(self, org_id: int, number: int) -> tuple[Grant, str] | None:
        """One grant with its account's path, as it stands now."""
        async with self._snapshot() as connection:
            found = await self._grants(connection, org_id, GrantFilter(number=number))
            return found[0] if found else None

    async def _grants(
        self, connection: Connection, org_id: int, wanted: GrantFilter
    ) -> list[tuple[Grant, str]]:
        """As many grants as are wanted; among open grants, ended ones take no place."""
        now = await moment_of(connection, org_id)
        found: list[tuple[Grant, str]] = []
        while True:
            listed = await list_grants(connection, org_id, wanted)
            found += [
                (grant, path)
                for grant, path in await self._seen(connection, org_id, listed, now)
                if not wanted.open_only or (grant.remaining and grant.state != GrantState.ENDED)
            ]
            if len(found) >= wanted.limit or len(listed) < wanted.limit:
                return found[: wanted.limit]
            wanted = replace(wanted, after=listed[-1][0].grant_id)

    async def _seen(
        self, connection: Connection, org_id: int, listed: list[tuple[Grant, str]], now: int
    ) -> list[tuple[Grant, str]]:
        numbers = sorted({grant.account_id for grant, _ in listed})
        rolled: dict[int, Grant] = {}
        for cached in await self._books(connection, org_id, numbers):
            roll_all(cached, now)
            rolled |= cached.book.lots
        return [(seen_at(rolled.get(grant.grant_id, grant), now), path) for grant, path in listed]

    async def reservations(
        self, org: str | int, wanted: ReservationFilter
    ) -> list[tuple[Reservation, tuple[str, ...]]]:
        """Reservations with their payers' paths in turn, newest first, each as it stands now."""
        async with self._snapshot() as connection:
            org_id = org if isinstance(org, int) else await find_org(connection, org)
            if org_id is None:
                return []
            now = await moment_of(connection, org_id)
            listed = await list_reservations(connection, org_id, wanted, now)
            payers = sorted({reservation.payer_id for reservation, _ in listed})
            books = await self._books(connection, org_id, payers)
        rolled: dict[int, Reservation] = {}
        for cached in books:
            roll_all(cached, now)
            rolled |= cached.book.reservations
        for reservation, _ in listed:
            standing = rolled.get(reservation.reservation_id)
            if standing is not None:
                reservation.state, reservation.held = standing.state, standing.held
                reservation.ended_at, reservation.decision = standing.ended_at, standing.decision
        return listed

    async def topups(self, org: str | int, wanted: TopUpFilter) -> list[tuple[TopUpRow, str]]:
        """Top-ups with their accounts' paths, newest first."""
        async with self._snapshot() as connection:
            org_id = org if isinstance(org, int) else await find_org(connection, org)
            return [] if org_id is None else await list_topups(connection, org_id, wanted)

    async def transfers(self, org_id: int, wanted: TransferFilter) -> list[TransferRow]:
        """Transfers that left an account or arrived at it, the latest first."""
        async with self._snapshot() as connection:
            return await list_transfers(connection, org_id, wanted)

    async def entries(self, org: str, wanted: EntryFilter) -> list[EntryRow]:
        """Entries of the ledger, newest first, as recorded."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org)
            return [] if org_id is None else await list_entries(connection, org_id, wanted)

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Connection]:
        """A connection on which everything that is read is of one moment."""
        async with snapshot(self.pool) as connection:
            yield connection

    @asynccontextmanager
    async def _book(self, path: str) -> AsyncIterator[tuple[Connection, CachedBook | None]]:
        """The book of one account and of those above it, as they are stored."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org_of(path))
            if org_id is None:
                yield connection, None
                return
            needs = Needs(orgs={org_id}, paths={(org_id, each) for each in lineage(path)})
            yield connection, (await load(connection, needs))[org_id]

    async def _books(
        self, connection: Connection, org_id: int, account_ids: list[int]
    ) -> list[CachedBook]:
        """Books with accounts by their numbers, a bounded number in each, and maybe with others."""
        books = []
        while account_ids:
            chosen, others = account_ids[:ACCOUNTS_AT_ONCE], account_ids[ACCOUNTS_AT_ONCE:]
            needs = Needs(orgs={org_id}, account_ids={(org_id, each) for each in chosen})
            cached = (await load(connection, needs))[org_id]
            account_ids = [each for each in others if each not in cached.book.accounts]
            books.append(cached)
        return books

    async def _tree(self, connection: Connection, cached: CachedBook, path: str) -> Balance:
        """The sums over a subtree, accounts that are due brought forward first."""
        org_id, now = cached.book.org.org_id, cached.now
        sums, due = await sum_tree(connection, org_id, path, now)
        known = {
            account.account_id: account
            for each in await self._books(connection, org_id, due)
            for account in roll_all(each, now)
        }
        rolled = [known[number] for number in due]
        return Balance(
            path=path,
            available=sums.available + sum(account.available for account in rolled),
            reserved=sums.reserved + sum(account.reserved for account in rolled),
            spent=sums.spent + sum(account.spent for account in rolled),
            pending=await sum_pending(connection, org_id, path, now),
            overrun=sums.overrun + sum(account.overrun for account in rolled),
            version=sums.version + sum(account.version for account in rolled),
            as_of=now,
        )

    async def _past(
        self,
        connection: Connection,
        cached: CachedBook,
        account: Account,
        at: int,
        *,
        tree: bool,
    ) -> Balance:
        """Sums of entries, with entries that are due but not yet written.

        An instant to come is answered as of now: what it will bring is not on the books.
        """
        org_id = cached.book.org.org_id
        instant = min(at, cached.now)
        accounts = [account]
        if tree:
            everything = AccountFilter(under=account.path, limit=TREE_ACCOUNTS_MAX + 1)
            accounts = await list_accounts(connection, org_id, everything)
            if len(accounts) > TREE_ACCOUNTS_MAX:
                raise TreeTooLarge
        numbers = [each.account_id for each in accounts]
        due = [each.account_id for each in accounts if each.due_at <= cached.now]
        coming = unwritten(await self._books(connection, org_id, due), instant, cached.now)
        sums = [await sums_at(connection, org_id, numbers, at=instant)]
        sums += (moved for number in due for moved in coming.get(number, ()))
        return Balance(
            path=account.path,
            available=sum(each.available for each in sums),
            reserved=sum(each.reserved for each in sums),
            spent=sum(each.spent for each in sums),
            version=account.version,
            as_of=instant,
        )


def roll_all(cached: CachedBook, now: int | None = None) -> list[Account]:
    """Bring every account of a book forward, to be read and thrown away."""
    accounts = list(cached.book.accounts.values())
    for account in accounts:
        roll(cached.book, account, cached.now if now is None else min(now, cached.now))
    return accounts


def unwritten(books: list[CachedBook], at: int, now: int) -> dict[int, list[Buckets]]:
    """The effect by ``at`` of what is due and not stored, by account; books may share accounts."""
    found: dict[int, list[Buckets]] = {}
    for cached in books:
        roll_all(cached, now)
        of_page: dict[int, list[Buckets]] = {}
        for entry in cached.book.entries:
            if entry.effective_at <= at:
                of_page.setdefault(entry.account_id, []).append(Buckets(*moves_of(entry)))
        found |= of_page
    return found


def pending(book: Book, account: Account) -> int:
    """What the account's grants hold that have not started."""
    return sum(
        grant.remaining
        for grant in book.grants[account.account_id]
        if grant.state is GrantState.PENDING
    )
