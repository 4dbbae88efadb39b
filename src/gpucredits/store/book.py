"""Filling books: lock the orgs of a batch, take the time, load every row the commands touch.

Owns: what a stored row looks like as a row of the core. One call is one round trip.
Must not: decide anything or write (book_save does).

Leases are loaded without what no rule reads (region, node, metadata; where the org has no limits
also job and GPU type), because tens of thousands of them are loaded each second;
store/reservations.py reads them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from sys import intern
from typing import Any

import msgspec

from gpucredits.core.account import Account, Model, Status
from gpucredits.core.book import Book, Org
from gpucredits.core.grant import Grant, GrantState, Source, consumption_order
from gpucredits.core.price import Price
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow, TopUpStatus
from gpucredits.store.book_gates import (
    fill_boost,
    fill_bucket,
    fill_budget,
    fill_job,
    fill_period,
    fill_quota,
    fill_tally,
    fill_terms,
)
from gpucredits.store.connection import Connection
from gpucredits.store.needs import Needs
from gpucredits.store.page import Kept, Page, Pages, StoredRow, settings_of
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
NO_METADATA: dict[str, str] = {}  # of every lease that is loaded: nobody adds to it
MODELS = tuple(Model)
STATUSES = tuple(Status)
SOURCES = tuple(Source)
GRANT_STATES = tuple(GrantState)
LEASE_STATES = tuple(ReservationState)
DECISIONS = tuple(Decision)
TOPUP_STATUSES = tuple(TopUpStatus)

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


def open_page(row: StoredRow) -> Page:
    """The page of an org: (org, now; next id, next entry id, clock, version, flags; path)."""
    _, org_id, now, next_id, next_entry_id, clock, version, gated, budgeted = row[:9]
    org = Org(org_id, row[21], next_id, next_entry_id, clock, version)
    page = Page(Book(org), now, next_id, next_entry_id)
    page.gated, page.budgeted = gated == 1, budgeted == 1
    return page


def fill_suspended(page: Page, row: StoredRow) -> None:
    """An account that is suspended, by an operator (1) or by debt alone (0): (status; path)."""
    page.book.suspended = (*page.book.suspended, row[21])
    if not row[3]:
        page.book.overdue = (*page.book.overdue, row[21])


def fill_account(page: Page, row: StoredRow) -> None:
    """An account with its balance, and whether the clock has made something of it due."""
    account_id, path = row[2], row[21]
    book = page.book
    if row[16]:
        book.complete.add(account_id)
    page.fresh_until = min(page.fresh_until, row[12])
    if account_id in book.accounts:
        return
    account = Account(
        account_id,
        path,
        MODELS[row[3]],
        row[4],
        STATUSES[row[5]],
        row[6],
        row[7],
        row[8],
        row[9],
        row[10],
        row[11],
        row[12],
        row[13],
        row[14] == 1,
        row[15],
        from_json(row[22]),
        row[18] == 1,
        row[17],
        row[19],
    )
    book.accounts[account_id] = account
    book.paths[path] = account
    if account_id not in book.grants:
        book.grants[account_id] = []
    page.settings[account_id] = settings_of(account)


def fill_grant(page: Page, row: StoredRow) -> None:
    """A grant; it may come twice, as an open one and as one that is named."""
    book = page.book
    grant_id = row[2]
    if grant_id in book.lots:
        return
    grant = Grant(
        grant_id,
        row[3],
        row[4],
        row[5],
        row[6],
        row[7],
        row[8],
        SOURCES[row[9]],
        GRANT_STATES[row[10]],
        row[11],
        row[12],
        from_json(row[22]),
        row[13],
    )
    book.lots[grant_id] = grant
    page.grant_states[grant_id] = grant.state
    if grant.remaining:
        book.grants.setdefault(grant.account_id, []).append(grant)


def fill_lease(page: Page, row: StoredRow) -> None:
    """A lease, as far as the rules read it; it may come twice, as named and as due."""
    # Taken apart in one go, because this runs for every heartbeat, and kept on few lines.
    # fmt: off
    (
        _, _, lease_id, account_id, payer_id, gpu_count, price, window_ms, admitted_at, expires_at,
        escrow_windows, max_amount, held, settled, adjusted, refunded, used_ms, seq, state,
        decision, ended_at, account, gpu_type, job_id, paid, _, _, terms,
    ) = row
    # fmt: on
    leases = page.book.reservations
    if lease_id in leases:
        return
    lease = leases[lease_id] = Reservation(
        lease_id,
        intern(account),
        account_id,
        payer_id,
        job_id or "",
        intern(gpu_type or ""),
        gpu_count,
        "",
        "",
        price,
        0,
        window_ms,
        admitted_at,
        expires_at,
        escrow_windows,
        max_amount,
        held,
        settled,
        adjusted,
        refunded,
        used_ms,
        seq,
        LEASE_STATES[state],
        DECISIONS[decision],
        ended_at,
        ((paid[0], paid[1]),) if len(paid) == 2 else pairs(paid),
        NO_METADATA,
    )
    if gpu_type is not None:  # the org has limits, and those want to know since when it runs
        lease.beat_at = expires_at - window_ms * (1 + escrow_windows) * 1_000
    is_special = terms is not None and fill_terms(lease, terms)
    if state or decision or adjusted or refunded or is_special:
        page.lease_states[lease_id] = (LEASE_STATES[state], DECISIONS[decision])
        if state:
            page.over.append(lease_id)


def pairs(paid: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(grant, amount) for each grant that paid, from the flat list that is stored."""
    return tuple(zip(paid[::2], paid[1::2], strict=True))


def fill_topup(page: Page, row: StoredRow) -> None:
    """A top-up."""
    topup = TopUpRow(
        topup_id=row[2],
        account_id=row[3],
        amount=row[4],
        status=TOPUP_STATUSES[row[5]],
        grant_id=row[6],
        expires_at=row[7],
        priority=row[8],
        created_at=row[9],
        payment_reference=row[21],
        metadata=from_json(row[22]),
    )
    page.passing = True
    page.book.topups[topup.topup_id] = topup
    page.topup_statuses[topup.topup_id] = topup.status


def fill_price(page: Page, row: StoredRow) -> None:
    """The version in force of a price: (type, region, owner)."""
    page.passing = True
    page.book.prices.append(Price(row[2], row[21], row[22], row[3], row[4], row[23]))


def fill_answer(page: Page, row: StoredRow) -> None:
    """What a key was used for, and what was answered."""
    page.passing = True
    page.answers[row[21]] = (row[25], row[26])


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


def from_json(text: str) -> dict[str, str]:
    """Metadata as stored."""
    return {} if text == "{}" else msgspec.json.decode(text, type=dict[str, str])
