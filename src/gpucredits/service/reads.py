"""Reads: the answers that a write would see now, and those of the past.

Owns: bringing what is read forward to now with the same rule that writes use, so that no answer
depends on a sweeper.
Must not: write, or speak SQL (store does).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gpucredits.core.account import Account, Model, org_of
from gpucredits.core.book import Book
from gpucredits.core.decide import roll
from gpucredits.core.entry import Entry
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.reservation import Reservation
from gpucredits.core.topup import TopUpRow
from gpucredits.service.moves import moves_of
from gpucredits.store.accounts import AccountFilter, list_accounts, sum_pending, sum_tree
from gpucredits.store.book import Page, load
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.entries import EntryFilter, EntryRow, list_entries
from gpucredits.store.grants import GrantFilter, list_grants
from gpucredits.store.history import Buckets, sums_at
from gpucredits.store.needs import Needs
from gpucredits.store.orgs import find_org
from gpucredits.store.reservations import ReservationFilter, list_reservations
from gpucredits.store.snapshot import snapshot
from gpucredits.store.topups import TopUpFilter, list_topups
from gpucredits.store.usage import Grouping, Spent, sum_spent

ACCOUNTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """An account's buckets, or a subtree's, as of an instant.

    What has not started, what the house covered and how far below zero a postpaid account may go
    are known of now only: None of the past.
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


class Reads:
    """Everything that can be asked. An account or org that does not exist gives None."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    async def account(self, path: str) -> Account | None:
        """An account as it stands now."""
        async with self._page(path) as (_, page):
            account = page.book.paths.get(path) if page else None
            if page and account:
                roll(page.book, account, page.now)
            return account

    async def balance(
        self,
        path: str,
        *,
        at: int | None = None,
        known_at: int | None = None,
        tree: bool = False,
    ) -> Balance | None:
        """The balance now; or at a past instant, as is known now or as was known then."""
        async with self._page(path) as (connection, page):
            account = page.book.paths.get(path) if page else None
            if page is None or account is None:
                return None
            if at is not None or known_at is not None:
                return await self._past(connection, page, account, at, known_at, tree=tree)
            if tree:
                return await self._tree(connection, page, path)
            roll(page.book, account, page.now)
            return Balance(
                path=path,
                available=account.available,
                reserved=account.reserved,
                spent=account.spent,
                pending=pending(page.book, account),
                overrun=account.overrun,
                credit_limit=account.credit_limit if account.model is Model.POSTPAID else None,
                version=account.version,
                as_of=page.now,
            )

    async def accounts(self, org: str, wanted: AccountFilter) -> list[Account]:
        """Accounts of an org in order of path, each as it stands now."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org)
            if org_id is None:
                return []
            listed = await list_accounts(connection, org_id, wanted)
            numbers = [account.account_id for account in listed]
            rolled = {
                account.account_id: account
                for page in await self._pages(connection, org_id, numbers)
                for account in roll_all(page)
            }
        return [rolled[number] for number in numbers]

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
        listed = await list_grants(connection, org_id, wanted)
        rolled: dict[int, Grant] = {}
        numbers = sorted({grant.account_id for grant, _ in listed})
        for page in await self._pages(connection, org_id, numbers):
            roll_all(page)
            rolled |= page.book.lots
        return [(rolled.get(grant.grant_id, grant), path) for grant, path in listed]

    async def reservations(
        self, org: str | int, wanted: ReservationFilter
    ) -> list[tuple[Reservation, str]]:
        """Reservations with their payers' paths, newest first, each as it stands now."""
        async with self._snapshot() as connection:
            org_id = org if isinstance(org, int) else await find_org(connection, org)
            if org_id is None:
                return []
            listed = await list_reservations(connection, org_id, wanted)
            payers = sorted({reservation.payer_id for reservation, _ in listed})
            pages = await self._pages(connection, org_id, payers)
        rolled: dict[int, Reservation] = {}
        for page in pages:
            roll_all(page)
            rolled |= page.book.reservations
        for reservation, _ in listed:
            now = rolled.get(reservation.reservation_id)
            if now is not None:
                reservation.state, reservation.held = now.state, now.held
                reservation.ended_at, reservation.decision = now.ended_at, now.decision
        return listed

    async def topups(self, org: str | int, wanted: TopUpFilter) -> list[tuple[TopUpRow, str]]:
        """Top-ups with their accounts' paths, newest first."""
        async with self._snapshot() as connection:
            org_id = org if isinstance(org, int) else await find_org(connection, org)
            return [] if org_id is None else await list_topups(connection, org_id, wanted)

    async def entries(self, org: str, wanted: EntryFilter) -> list[EntryRow]:
        """Entries of the ledger, newest first, as recorded."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org)
            return [] if org_id is None else await list_entries(connection, org_id, wanted)

    async def usage(
        self, path: str, *, since: int, until: int, by: Grouping = "job", limit: int = 100
    ) -> list[Spent]:
        """What the subtree of a payer spent in [since, until), by job or otherwise."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org_of(path))
            if org_id is None:
                return []
            return await sum_spent(
                connection, org_id, path, since=since, until=until, by=by, limit=limit
            )

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Connection]:
        """A connection on which everything that is read is of one moment."""
        async with snapshot(self.pool) as connection:
            yield connection

    @asynccontextmanager
    async def _page(self, path: str) -> AsyncIterator[tuple[Connection, Page | None]]:
        """The page of one account as it is stored."""
        async with self._snapshot() as connection:
            org_id = await find_org(connection, org_of(path))
            if org_id is None:
                yield connection, None
                return
            needs = Needs(orgs={org_id}, paths={(org_id, path)})
            yield connection, (await load(connection, needs))[org_id]

    async def _pages(
        self, connection: Connection, org_id: int, account_ids: list[int]
    ) -> list[Page]:
        """Pages with accounts by their numbers, so many at a time."""
        pages = []
        for start in range(0, len(account_ids), ACCOUNTS_AT_ONCE):
            chosen = account_ids[start : start + ACCOUNTS_AT_ONCE]
            needs = Needs(orgs={org_id}, account_ids={(org_id, each) for each in chosen})
            pages.append((await load(connection, needs))[org_id])
        return pages

    async def _tree(self, connection: Connection, page: Page, path: str) -> Balance:
        """The sums over a subtree, accounts that are due brought forward first."""
        org_id, now = page.book.org.org_id, page.now
        sums, due = await sum_tree(connection, org_id, path, now)
        rolled = [
            account
            for each in await self._pages(connection, org_id, due)
            for account in roll_all(each, now)
        ]
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
        page: Page,
        account: Account,
        at: int | None,
        known_at: int | None,
        *,
        tree: bool,
    ) -> Balance:
        """Sums of entries; what is due but not yet written counts unless ``known_at`` is asked.

        An instant to come is answered as of now: what it will bring is not on the books.
        """
        org_id = page.book.org.org_id
        known = page.now if known_at is None else min(known_at, page.now)
        instant = known if at is None else min(at, page.now)
        accounts = [account]
        if tree:
            everything = AccountFilter(under=account.path, limit=10**9)
            accounts = await list_accounts(connection, org_id, everything)
        sums = [
            await sums_at(connection, org_id, each.account_id, at=instant, known_at=known)
            for each in accounts
        ]
        if known_at is None:
            numbers = [each.account_id for each in accounts]
            for each in await self._pages(connection, org_id, numbers):
                roll_all(each, page.now)
                sums.extend(unwritten(each.book.entries, instant))
        return Balance(
            path=account.path,
            available=sum(each.available for each in sums),
            reserved=sum(each.reserved for each in sums),
            spent=sum(each.spent for each in sums),
            version=account.version,
            as_of=instant,
        )


def roll_all(page: Page, now: int | None = None) -> list[Account]:
    """Bring every account of a page forward, to be read and thrown away."""
    accounts = list(page.book.accounts.values())
    for account in accounts:
        roll(page.book, account, page.now if now is None else now)
    return accounts


def unwritten(entries: list[Entry], at: int) -> list[Buckets]:
    """What entries that are due but not stored do to their accounts by ``at``."""
    return [Buckets(*moves_of(entry)) for entry in entries if entry.effective_at <= at]


def pending(book: Book, account: Account) -> int:
    """What the account's grants hold that have not started."""
    return sum(
        grant.remaining
        for grant in book.grants[account.account_id]
        if grant.state is GrantState.PENDING
    )
