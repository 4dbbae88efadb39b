"""Opening books: take the time and load every row that the commands of a batch touch.

Owns: what is read, what is used that was kept of earlier batches, and whether orgs are locked for
it. What a row looks like is in book_rows and book_gates.
Must not: decide anything or write (book_save does).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpucredits.core import bounds
from gpucredits.core.grant import consumption_order
from gpucredits.store.book.cache.book_cache import BookCache
from gpucredits.store.book.cache.clock_check import steady_us
from gpucredits.store.book.cache.price_board import PriceBoard
from gpucredits.store.book.cached_book import CachedBook, CachedBooks, StoredRow
from gpucredits.store.book.guard import Guard, guard_of
from gpucredits.store.book.ledger_rows import (
    fill_account,
    fill_answer,
    fill_grant,
    fill_lease,
    fill_past,
    fill_price,
    fill_suspended,
    fill_topup,
    open_page,
    price_of,
)
from gpucredits.store.book.limit_rows import (
    fill_boost,
    fill_bucket,
    fill_budget,
    fill_job,
    fill_period,
    fill_quota,
    fill_tally,
)
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.sql_batch import numbers
from gpucredits.store.database.connection import Connection

OPEN_BOOK = (
    "SELECT * FROM open_book($1, $2::text::integer[], $3::text::bigint[],"
    " $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,"
    " $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)"
)
LOCK_ORGS = """
WITH locked AS MATERIALIZED (
    SELECT o.org_id, o.version, o.clock, o.gated FROM orgs o WHERE o.org_id = ANY ($1)
    ORDER BY o.org_id FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT ledger_now() AS now, c.offset_us FROM (SELECT count(*) FROM locked) AS all_of
    CROSS JOIN clock c
)
SELECT l.org_id, l.version, greatest(m.now, l.clock), l.gated AND EXISTS (
    SELECT 1 FROM accounts a WHERE a.org_id = l.org_id AND a.due_at <= greatest(m.now, l.clock)),
    m.now, m.offset_us
FROM locked l CROSS JOIN moment m"""
GRANT, PRICE = 3, 6  # kinds of rows
ROWS_AT_A_STRETCH = 1_000  # taken in without letting others go
FILL: tuple[Callable[[CachedBook, StoredRow], None], ...] = (
    fill_suspended,  # never used: orgs are opened, not filled
    fill_suspended,
    fill_account,
    fill_grant,
    fill_lease,
    fill_topup,
    fill_price,
    fill_answer,
    fill_quota,
    fill_tally,
    fill_job,
    fill_bucket,
    fill_boost,
    fill_budget,
    fill_period,
    fill_past,
)

__all__ = ["CachedBook", "CachedBooks", "load", "load_and_lock", "look_up"]


async def load(connection: Connection, needs: Needs) -> CachedBooks:
    """One page for each org that exists, of one moment; nothing is locked."""
    pages: CachedBooks = {}
    await read(connection, needs, pages, {})
    return opened(pages, needs)


async def load_and_lock(connection: Connection, needs: Needs, shelf: BookCache) -> CachedBooks:
    """One page for each org that exists, locked until the transaction ends.

    A page's ``now`` was read after the lock was held and is never before the org's clock. Pages
    that are kept are used as far as they still hold; what they lack is read.
    """
    asked_at = steady_us()
    found = await connection.fetch(LOCK_ORGS, sorted(needs.orgs))
    kept, true = shelf.take(needs), CachedBooks()
    for org_id, version, now, is_due, *_ in found:
        page = kept.get(org_id)
        if page is None or is_due or version != page.book.org.version:
            continue
        page.now = now
        if is_usable(page, needs, now):
            true[org_id] = page
    if found:
        told, offset_us = found[0][4:]
        shelf.watch.told(told, offset_us)
        shelf.steadiness.check(told, offset_us, asked_at)
    if not (needs.only_renews and is_enough(needs, true)):
        true = await fill(connection, needs, true, shelf)
        remember(kept, true)
    return opened(true, needs)


async def look_up(
    connection: Connection, needs: Needs, shelf: BookCache
) -> tuple[CachedBooks, Guard]:
    """One page for each org that exists, and what must still be so when it is saved.

    Nothing is locked. What is asked about known leases, accounts and prices needs no reading.
    """
    known, watch, board = shelf.take(needs), shelf.watch, shelf.board
    kept, now = known, watch.now()
    if now is not None:
        kept = {org_id: page for org_id, page in known.items() if is_usable(page, needs, now)}
        latest = max((now, *(page.book.org.clock for page in kept.values())))
        if is_enough(needs, kept) and board.answers(needs.prices, latest):
            for page in kept.values():
                page.now = max(now, page.book.org.clock)
            quote(needs, kept, board)
            version = board.version if needs.prices else None
            return opened(kept, needs), guard_of(kept, now, watch.offset_us, version)
    pages = await fill(connection, needs, kept, shelf)
    remember(known, pages)
    needs.were_read = True
    read_at = min((page.read_at for page in pages.values()), default=0)
    return opened(pages, needs), guard_of(pages, read_at)


def is_enough(needs: Needs, kept: CachedBooks) -> bool:
    """Whether pages hold all that is needed but prices; whether a key was used is found later."""
    if needs.must_read or len(kept) != len(needs.orgs) or needs.beyond(kept).leases:
        return False
    return needs.only_renews or (
        not any(page.gated or page.budgeted for page in kept.values())
        and all(path in kept[org_id].book.paths for org_id, path in needs.paths)
    )


def quote(needs: Needs, pages: CachedBooks, board: PriceBoard) -> None:
    """Put the prices that are asked for on the pages."""
    for key in needs.prices:
        price, page = board.price(key), pages[key[0]]
        if price is not None:
            page.book.prices.append(price)
        page.passing = True


def opened(pages: CachedBooks, needs: Needs) -> CachedBooks:
    """Pages on which a batch can be decided."""
    counted = {org_id for org_id, _ in needs.counted} if needs.counts_anew else set()
    for org_id in needs.anew | counted:
        if org_id in pages:
            pages[org_id].book.counts_anew = needs.counts_anew
            pages[org_id].outdated = True
    for page in pages.values():
        if page.gated:
            page.book.partial = needs.only_renews and not page.book.complete
            page.book.gated = page.book.gated or page.book.partial
    return pages


async def fill(
    connection: Connection, needs: Needs, kept: CachedBooks, shelf: BookCache
) -> CachedBooks:
    """Read what pages lack that are kept, and whole pages of the other orgs."""
    pages: CachedBooks = {}
    await read(connection, needs.beyond(kept), pages, kept, shelf)
    stale = {
        org_id
        for org_id, page in kept.items()
        if pages.get(org_id) is not page or not is_usable(page, needs, page.now)
    }
    if stale:
        await read(connection, needs.of(stale), pages, {})
    return pages


def is_fresh(page: CachedBook, now: int) -> bool:
    """Whether the clock has made nothing due that a page read anew would hold."""
    return max(now, page.book.org.clock) < page.fresh_until and not page.book.complete


def is_usable(page: CachedBook, needs: Needs, now: int) -> bool:
    """Whether the clock has made nothing due that a batch on the page would have to see.

    Without limits a beat sees its payer only; with them, whatever has lapsed in the org.
    """
    if is_fresh(page, now):
        return True
    if page.gated or not needs.only_renews:
        return False
    book, now = page.book, max(now, page.book.org.clock)
    leases, accounts = book.reservations, book.accounts
    payers = {
        leases[number].payer_id for number in needs.leases[book.org.org_id] if number in leases
    }
    return all(accounts[payer].due_at > now for payer in payers - book.complete)


def remember(known: CachedBooks, pages: CachedBooks) -> None:
    """Let pages that were read anew take over, in the end, what was known before and holds."""
    for org_id, older in known.items():
        page = pages.get(org_id)
        if page is None or page is older:
            continue
        if page.book.org.version == older.book.org.version:
            page.older = older


async def read(
    connection: Connection,
    needs: Needs,
    pages: CachedBooks,
    kept: CachedBooks,
    shelf: BookCache | None = None,
) -> None:
    """Open the books of the orgs, or add to the pages that are kept of them what they lack."""
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
        *columns(needs.jobs, 3),
        not needs.only_renews,
        *columns(needs.references, 2),
        needs.chains,
    )
    with_grants: dict[int, CachedBook] = {}
    if shelf is not None and rows:
        shelf.steadiness.check(rows[0][9], rows[0][12], asked_at)
        if needs.prices:
            learn_prices(shelf.board, needs, rows)
    for place, row in enumerate(rows, start=1):
        if place % ROWS_AT_A_STRETCH == 0:
            await asyncio.sleep(0)
        kind, org_id = row[0], row[1]
        if kind == 0:
            pages[org_id] = begin_page(row, kept.get(org_id))
        else:
            page = pages[org_id]
            FILL[kind](page, row)
            if kind == GRANT:
                with_grants[org_id] = page
    for page in with_grants.values():
        for lots in page.book.grants.values():
            if len(lots) > 1:
                lots.sort(key=consumption_order)


def learn_prices(board: PriceBoard, needs: Needs, rows: Sequence[StoredRow]) -> None:
    """Keep what was found of prices; the first row, an org's, says of which version it is."""
    version, until = rows[0][10], rows[0][11]
    prices = [(row[1], price_of(row)) for row in rows if row[0] == PRICE]
    found = {(org_id, each.gpu_type, each.region, each.account): each for org_id, each in prices}
    board.learn(version, bounds.NEVER_US if until is None else until, needs.prices, found)


def begin_page(row: StoredRow, kept: CachedBook | None) -> CachedBook:
    """The page that the rows which follow go to: the one that is kept, if it is still true."""
    page = open_page(row)
    if kept is None or kept.book.org.version != page.book.org.version:
        return page
    kept.book.suspended, kept.book.account_windows = {}, {}
    kept.now, kept.read_at = page.now, page.read_at
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
