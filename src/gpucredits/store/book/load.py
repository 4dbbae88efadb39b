"""Opening books: take the time and load every row that the commands of a batch touch.

Owns: what is read, what is taken from the cache instead, and whether the orgs are locked first.
Must not: know which rows a batch needs or whether a cached book has them (needs does), decide
anything (a row that does not exist is the rules' business), know what a row looks like (fill does)
or write (save does).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from gpucredits.core.grant import consumption_order
from gpucredits.core.price import Price
from gpucredits.store.book.book_cache import BookCache, PriceBoard
from gpucredits.store.book.cached_book import CachedBook, CachedBooks
from gpucredits.store.book.codecs import StoredRow
from gpucredits.store.book.database_clock import steady_us
from gpucredits.store.book.fill import FILL, ID, open_book
from gpucredits.store.book.needs import Needs, is_enough, is_usable, note_complete
from gpucredits.store.book.rows import opened_org_values, price_of
from gpucredits.store.book.save import Guard, guard_of, numbers
from gpucredits.store.book.tables import ACCOUNT, GRANT, OPENED_ORG, PRICE
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import DRIVER_ERRORS, raise_ours
from gpucredits.store.outages import read_outages

OPEN_BOOK = (
    "SELECT * FROM open_book($1, $2::text::bigint[], $3::text::bigint[],"
    " $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,"
    " $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)"
)
LOCK_ORGS = """
WITH locked AS MATERIALIZED (
    SELECT o.org_id, o.version, o.clock, o.gated FROM orgs o WHERE o.org_id = ANY ($1)
    ORDER BY o.org_id FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT clock_us(c.offset_us) AS now, c.offset_us FROM (SELECT count(*) FROM locked) AS all_of
    CROSS JOIN clock c
)
SELECT l.org_id, l.version, greatest(m.now, l.clock), l.gated AND EXISTS (
    SELECT 1 FROM accounts a WHERE a.org_id = l.org_id AND a.due_at <= greatest(m.now, l.clock)),
    m.now, m.offset_us
FROM locked l CROSS JOIN moment m"""
ANSWERED = """
SELECT EXISTS (SELECT FROM unnest($1::bigint[], $2::text[]) AS w(org_id, key)
    JOIN idempotency i ON i.org_id = w.org_id AND i.key = w.key)"""
ORG_KIND, GRANT_KIND, PRICE_KIND = OPENED_ORG.kind, GRANT.kind, PRICE.kind
ACCOUNT_KIND = ACCOUNT.kind
ROWS_AT_A_STRETCH = 1_000  # taken in without letting others go


async def load(connection: Connection, needs: Needs) -> CachedBooks:
    """One book for each org that exists, of one moment; nothing is locked."""
    books: CachedBooks = {}
    await read(connection, needs, books, {})
    if any(is_due(cached) for cached in books.values()):
        outages = await read_outages(connection)
        for cached in books.values():
            cached.book.outages = outages
    return opened(books, needs)


def is_due(cached: CachedBook) -> bool:
    """Whether the clock has made anything true of an account: maybe a lease has ended."""
    return any(account.due_at <= cached.now for account in cached.book.accounts.values())


async def load_and_lock(connection: Connection, needs: Needs, cache: BookCache) -> CachedBooks:
    """One book for each org that exists, locked until the transaction ends.

    A book's ``now`` was read after the lock was held and is never before the org's clock. Cached
    books are used as far as they still hold; what they lack is read.
    """
    asked_at = steady_us()
    found = await connection.fetch(LOCK_ORGS, sorted(needs.orgs))
    kept, true = cache.take(needs.orgs, needs.anew), CachedBooks()
    for org_id, version, now, is_due, *_ in found:
        cached = kept.get(org_id)
        if cached is None or is_due or version != cached.book.org.version:
            continue
        cached.now = now
        if is_usable(cached, needs, now):
            true[org_id] = cached
    if found:
        told, offset_us = found[0][4:]
        cache.database_clock.told(told, offset_us)
        cache.clock_check.check(told, offset_us, asked_at)
    if not (needs.only_renews and is_enough(needs, true)):
        true = await fill(connection, needs, true, cache)
        remember(kept, true)
    return opened(true, needs)


async def look_up(
    connection: Connection, needs: Needs, cache: BookCache
) -> tuple[CachedBooks, Guard]:
    """One book for each org that exists, and the condition for saving it.

    Nothing is locked. Known leases, accounts and prices need no reading. Raises Unavailable and
    Conflict.
    """
    known = cache.take(needs.orgs, needs.anew)
    board, database_clock = cache.board, cache.database_clock
    kept, now = known, database_clock.now()
    if now is not None:
        kept = {org_id: cached for org_id, cached in known.items() if is_usable(cached, needs, now)}
        latest = max((now, *(cached.book.org.clock for cached in kept.values())))
        if is_enough(needs, kept) and board.answers(needs.prices, latest):
            for cached in kept.values():
                cached.now = max(now, cached.book.org.clock)
            quote(needs, kept, board)
            version = board.version if needs.prices else None
            return opened(kept, needs), guard_of(kept, now, database_clock.offset_us, version)
    try:
        books = await fill(connection, needs, kept, cache)
    except DRIVER_ERRORS as error:
        raise_ours(error)
    remember(known, books)
    needs.were_read = True
    read_at = min((cached.read_at for cached in books.values()), default=0)
    return opened(books, needs), guard_of(books, read_at)


async def any_answered(connection: Connection, keys: set[tuple[int, str]]) -> bool:
    """Whether one of some keys, by org, was answered before; raises Unavailable and Conflict.

    Where a key is recorded with its batch, its table tells. What is saved afterwards under a guard
    was not answered elsewhere in the meantime with anything that has changed the org.
    """
    try:
        return bool(keys) and bool(await connection.fetchval(ANSWERED, *columns(keys, 2)))
    except DRIVER_ERRORS as error:
        raise_ours(error)


def quote(needs: Needs, books: CachedBooks, board: PriceBoard) -> None:
    """Put the prices that are asked for into the books."""
    for key in needs.prices:
        price, cached = board.price(key), books[key[0]]
        if price is not None:
            cached.book.prices.append(price)
        cached.passing = True


def opened(books: CachedBooks, needs: Needs) -> CachedBooks:
    """The books, ready for a batch to be decided on them."""
    counted = {org_id for org_id, _ in needs.counted} if needs.counts_anew else set()
    for org_id in needs.anew | counted:
        if org_id in books:
            books[org_id].book.counts_anew = needs.counts_anew
            books[org_id].outdated = True
    for cached in books.values():
        if cached.gated:
            cached.book.partial = needs.only_renews and not cached.book.complete
            cached.book.gated = cached.book.gated or cached.book.partial
    return books


async def fill(
    connection: Connection, needs: Needs, kept: CachedBooks, cache: BookCache
) -> CachedBooks:
    """Read what cached books lack, and whole books of the other orgs."""
    books: CachedBooks = {}
    await read(connection, needs.beyond(kept), books, kept, cache)
    stale = {
        org_id
        for org_id, cached in kept.items()
        if books.get(org_id) is not cached or not is_usable(cached, needs, cached.now)
    }
    if stale:
        await read(connection, needs.of(stale), books, {})
    return books


def remember(known: CachedBooks, books: CachedBooks) -> None:
    """Let books that were read anew take over later what was known before and still holds."""
    for org_id, older in known.items():
        cached = books.get(org_id)
        if cached is None or cached is older:
            continue
        if cached.book.org.version == older.book.org.version:
            cached.older = older


async def read(
    connection: Connection,
    needs: Needs,
    books: CachedBooks,
    kept: CachedBooks,
    cache: BookCache | None = None,
) -> None:
    """Open the books of the orgs, or add to their cached books what these lack."""
    asked_at = steady_us()
    rows = await connection.fetch(
        OPEN_BOOK,
        sorted(needs.orgs),
        *leases_of(needs),
        *columns(needs.paths, 2),
        *columns(needs.account_ids, 2),
        *columns(needs.topups, 2),
        *columns(needs.corrected, 2),
        *columns(needs.prices, 4),
        *columns(needs.keys, 2),
        sorted(needs.anew),
        *columns(needs.counted if needs.counts_anew else (), 2),
        *columns(needs.limits, 2),
        *columns({job[:3] for job in needs.jobs}, 3),
        not needs.only_renews,
        *columns(needs.references, 2),
        needs.chains,
    )
    if cache is not None and rows:
        *_, read_at, prices_version, prices_until, offset_us, _ = opened_org_values(rows[0])
        cache.clock_check.check(read_at, offset_us, asked_at)
        if needs.prices:
            found = [(row[1], price_of(row)) for row in rows if row[0] == PRICE_KIND]
            learn_prices(cache.board, needs, prices_version, prices_until, found)
    note_complete(books, needs, await take_in(rows, books, kept))


async def take_in(
    rows: Sequence[StoredRow], books: CachedBooks, kept: CachedBooks
) -> dict[int, list[int]]:
    """Put rows into books; the accounts of each org that are among them."""
    with_grants: dict[int, CachedBook] = {}
    accounts: dict[int, list[int]] = {}
    for place, row in enumerate(rows, start=1):
        if place % ROWS_AT_A_STRETCH == 0:
            await asyncio.sleep(0)
        kind, org_id = row[0], row[1]
        if kind == ORG_KIND:
            books[org_id] = begin_book(row, kept.get(org_id))
            continue
        cached = books[org_id]
        FILL[kind](cached, row)
        if kind == GRANT_KIND:
            with_grants[org_id] = cached
        elif kind == ACCOUNT_KIND:
            accounts.setdefault(org_id, []).append(row[ID])
    for cached in with_grants.values():
        for lots in cached.book.grants.values():
            if len(lots) > 1:
                lots.sort(key=consumption_order)
    return accounts


def learn_prices(
    board: PriceBoard, needs: Needs, version: int, until: int, prices: list[tuple[int, Price]]
) -> None:
    """Keep the prices of orgs that were found, with their version."""
    found = {(org_id, each.gpu_type, each.region, each.account): each for org_id, each in prices}
    board.learn(version, until, needs.prices, found)


def begin_book(row: StoredRow, kept: CachedBook | None) -> CachedBook:
    """The book that the next rows go to: the cached one, if its version is still the org's."""
    cached = open_book(row)
    if kept is None or kept.book.org.version != cached.book.org.version:
        return cached
    kept.book.suspended, kept.book.account_windows = {}, {}
    kept.now, kept.read_at = cached.now, cached.read_at
    kept.jobs_read, kept.unread_jobs = {}, set()
    return kept


def leases_of(needs: Needs) -> tuple[str, str]:
    """The leases that are wanted, as two columns."""
    orgs: list[int] = []
    ids: list[int] = []
    for org_id, some in needs.leases.items():
        orgs.extend([org_id] * len(some))
        ids.extend(some)
    return numbers(orgs), numbers(ids)


def columns(rows: Iterable[tuple[Any, ...]], width: int) -> Iterable[Sequence[Any]]:
    """Rows as columns, in a stable order; as many empty columns when there are none."""
    found = list(zip(*sorted(rows), strict=True))
    return found or [()] * width
