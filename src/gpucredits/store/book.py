"""Opening books: lock the orgs of a batch, take the time, load every row the commands touch.

Owns: what is read and what is kept of earlier batches is used. One call is one round trip, hardly
ever two. What a row looks like is in book_rows and book_gates.
Must not: decide anything or write (book_save does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpucredits.core.grant import consumption_order
from gpucredits.store.book_gates import (
    fill_boost,
    fill_bucket,
    fill_budget,
    fill_job,
    fill_period,
    fill_quota,
    fill_tally,
)
from gpucredits.store.book_rows import (
    fill_account,
    fill_answer,
    fill_grant,
    fill_lease,
    fill_price,
    fill_suspended,
    fill_topup,
    open_page,
)
from gpucredits.store.connection import Connection
from gpucredits.store.needs import Needs
from gpucredits.store.page import Kept, Page, Pages, StoredRow
from gpucredits.store.shelf import Shelf
from gpucredits.store.statement import numbers

OPEN_BOOK = (
    "SELECT * FROM open_book($1, $2, $3::text::integer[], $4::text::bigint[],"
    " $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,"
    " $19, $20, $21, $22, $23, $24, $25, $26, $27)"
)
# A version that is known says that nothing else has changed, so one snapshot of the rest will do.
LOCK_ORGS = """
WITH locked AS MATERIALIZED (
    SELECT o.org_id, o.version, o.clock, o.gated FROM orgs o WHERE o.org_id = ANY ($1)
    ORDER BY o.org_id FOR NO KEY UPDATE
), moment AS MATERIALIZED (SELECT ledger_now() AS now FROM (SELECT count(*) FROM locked) AS all_of)
SELECT l.org_id, l.version, greatest(m.now, l.clock), l.gated AND EXISTS (
    SELECT 1 FROM accounts a WHERE a.org_id = l.org_id AND a.due_at <= greatest(m.now, l.clock))
FROM locked l CROSS JOIN moment m"""
GRANT = 3
FILL: tuple[Callable[[Page, StoredRow], None], ...] = (
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
)

__all__ = ["Page", "Pages", "load_and_lock"]


async def load_and_lock(
    connection: Connection, needs: Needs, *, lock: bool = True, shelf: Shelf | None = None
) -> Pages:
    """One page for each org that exists, locked until the transaction ends unless told not to.

    A page's ``now`` was read after the lock was held and is never before the org's clock. Pages of
    the shelf are used as far as they still hold; what they lack is read.
    """
    pages: Pages = {}
    if shelf is None:
        await read(connection, needs, pages, {}, lock=lock)
    else:
        stale = await reuse(connection, needs, pages, shelf)
        if stale:  # whoever held the lock may have put its page back by now
            stale = await reuse(connection, needs.of(stale), pages, shelf)
        if stale:
            await read(connection, needs.of(stale), pages, {}, lock=lock)
    for org_id in needs.whole:
        if org_id in pages:
            pages[org_id].book.whole = pages[org_id].outdated = True
    for page in pages.values():
        if page.gated:
            page.book.partial = needs.only_renews and not page.book.complete
            page.book.gated = page.book.gated or page.book.partial
    return pages


async def reuse(connection: Connection, needs: Needs, pages: Pages, shelf: Shelf) -> set[int]:
    """Lock the orgs and use the pages that are kept of them; those that have to be read anew.

    Beats whose leases are all on the shelf need no more than the lock.
    """
    kept = shelf.find(needs)
    wanted = needs.beyond(kept)
    if needs.only_renews and len(kept) == len(needs.orgs) and not wanted.leases:
        found = await connection.fetch(LOCK_ORGS, sorted(needs.orgs))
        moments = {row[0]: (row[1], row[2], row[3]) for row in found}
    else:
        moments = await read(connection, wanted, pages, kept, lock=True)
    stale = set()
    for org_id, (version, now, is_due) in moments.items():
        page, known = kept[org_id]
        if version != page.book.org.version:
            shelf.take(page)  # another server has changed the org
        elif version == known and shelf.take(page) and is_fresh(page, now, is_due=is_due):
            page.now = now
            pages[org_id] = page
            continue
        pages.pop(org_id, None)
        stale.add(org_id)
    return stale


def is_fresh(page: Page, now: int, *, is_due: bool) -> bool:
    """Whether the clock has made nothing due that a page read anew would hold."""
    return now < page.fresh_until and not is_due and not page.book.complete


async def read(
    connection: Connection, needs: Needs, pages: Pages, kept: Kept, *, lock: bool
) -> dict[int, tuple[int, int, bool]]:
    """Open the books of the orgs, or add to the pages that are kept of them what they lack.

    Returns the version and the time of each org of which a page is kept.
    """
    rows = await connection.fetch(
        OPEN_BOOK,
        lock,
        sorted(needs.orgs),
        *leases_of(needs),
        *columns(needs.paths, 2),
        *columns(needs.account_ids, 2),
        *columns(needs.topups, 2),
        *columns(needs.corrected, 2),
        *columns(needs.prices, 4),
        *columns(needs.keys, 2),
        sorted(needs.whole),
        *columns(needs.limits, 2),
        *columns(needs.jobs, 3),
        not needs.only_renews,
        *columns(needs.references, 2),
    )
    moments: dict[int, tuple[int, int, bool]] = {}
    with_grants: dict[int, Page] = {}
    for row in rows:
        kind, org_id = row[0], row[1]
        if kind == 0:
            pages[org_id] = open_page(row)
            if org_id in kept:
                moments[org_id] = (row[6], row[2], False)
                page, known = kept[org_id]
                if row[6] == known:  # otherwise what comes is not enough, and is read again
                    page.book.suspended = page.book.overdue = ()
                    pages[org_id] = page
        else:
            page = pages[org_id]
            FILL[kind](page, row)
            if kind == GRANT:
                with_grants[org_id] = page
    for page in with_grants.values():
        for lots in page.book.grants.values():
            if len(lots) > 1:
                lots.sort(key=consumption_order)
    return moments


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
