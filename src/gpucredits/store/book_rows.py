"""Rows of the ledger as a book is filled with them.

Owns: what a stored row looks like as a row of the core.
Must not: read (book does), decide anything or write (book_save does).

Leases are loaded without what no rule reads (node and metadata; where the org has no limits also
the job), because tens of thousands of them are loaded each second; store/reservations.py reads them
whole.
"""

from __future__ import annotations

from sys import intern

import msgspec

from gpucredits.core.account import Account, Funding, Model, Status
from gpucredits.core.book import Book, Org
from gpucredits.core.bounds import NEVER_US
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant, GrantState, Source
from gpucredits.core.price import Price
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow, TopUpStatus
from gpucredits.store.book_gates import AUTHORITIES, fill_terms, pairs
from gpucredits.store.page import Page, StoredRow, settings_of

PLACE_SEPARATOR = chr(31)
PLACES: dict[str, tuple[str, str]] = {}
PLACES_MAX = 10_000
NO_METADATA: dict[str, str] = {}  # of every lease that is loaded: nobody adds to it
MODELS = tuple(Model)
STATUSES = tuple(Status)
FUNDINGS = tuple(Funding)
SOURCES = tuple(Source)
GRANT_STATES = tuple(GrantState)
LEASE_STATES = tuple(ReservationState)
DECISIONS = tuple(Decision)
TOPUP_STATUSES = tuple(TopUpStatus)


def open_page(row: StoredRow) -> Page:
    """The page of an org: (org, now; next ids, clock, version, flags, time of reading; path)."""
    _, org_id, now, next_id, next_entry_id, clock, version, gated, budgeted, read_at = row[:10]
    org = Org(org_id, row[21], next_id, next_entry_id, clock, version)
    page = Page(Book(org), now, next_id, next_entry_id, read_at=read_at)
    page.gated, page.budgeted = gated == 1, budgeted == 1
    return page


def fill_suspended(page: Page, row: StoredRow) -> None:
    """An account that is suspended, by an operator (1) or by debt alone (0), or that bounds leases.

    (status or nothing, bound in ms or 0; path)
    """
    if row[3] is not None:
        page.book.suspended[row[21]] = not row[3]
    if row[4]:
        page.book.account_windows[row[21]] = row[4]


def fill_account(page: Page, row: StoredRow) -> None:
    """An account with its balance, and whether the clock has made something of it due."""
    account_id, path = row[2], row[21]
    book = page.book
    if row[16]:
        book.complete.add(account_id)
    page.fresh_until = min(page.fresh_until, row[12])
    if not row[14]:
        book.bare.discard(account_id)
    if account_id in book.accounts:
        return
    if row[14]:
        book.bare.add(account_id)
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
        row[13] == 1,
        row[15],
        from_json(row[22]),
        row[18] == 1,
        row[17],
        row[19],
        FUNDINGS[row[27][0]],
        row[27][1],
        AUTHORITIES[row[27][2]],
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
        row[14] or 0,
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
        decision, ended_at, account, place, job_id, paid, _, _, terms,
    ) = row
    # fmt: on
    leases = page.book.reservations
    if lease_id in leases:
        return
    gpu_type, region = PLACES.get(place) or place_of(place)
    lease = leases[lease_id] = Reservation(
        lease_id,
        intern(account),
        account_id,
        payer_id,
        job_id or "",
        gpu_type,
        gpu_count,
        region,
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
        expires_at - window_ms * (1 + escrow_windows) * 1_000,
    )
    is_special = terms is not None and fill_terms(lease, terms)
    if state or decision or adjusted or refunded or is_special:
        page.lease_states[lease_id] = (LEASE_STATES[state], DECISIONS[decision])
        if state:
            page.over.append(lease_id)


def place_of(text: str) -> tuple[str, str]:
    """The GPU type and the region of a lease, as they are read: few leases have others."""
    gpu_type, _, region = text.partition(PLACE_SEPARATOR)
    if len(PLACES) >= PLACES_MAX:
        PLACES.clear()
    place = PLACES[text] = (intern(gpu_type), intern(region))
    return place


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


def fill_past(page: Page, row: StoredRow) -> None:
    """An entry of before, as far as corrections read it: they come in the order of their ids."""
    entry_id, kind, account_id, amount, grant_id, other_grant_id = row[2:8]
    page.passing = True
    page.book.past.append(
        Entry(
            entry_id,
            0,
            EntryType(kind),
            account_id,
            amount,
            grant_id=grant_id,
            other_grant_id=other_grant_id,
        )
    )


def fill_price(page: Page, row: StoredRow) -> None:
    """The version in force of a price, or the end of the last: (type, region, owner)."""
    page.passing = True
    page.book.prices.append(price_of(row))


def price_of(row: StoredRow) -> Price:
    """A price as it is read."""
    until = NEVER_US if row[5] is None else row[5]
    return Price(row[2], row[21], row[22], row[3], row[4], row[23], until, bool(row[6]))


def fill_answer(page: Page, row: StoredRow) -> None:
    """What a key was used for, and what was answered."""
    page.passing = True
    page.answers[row[21]] = (row[25], row[26])


def from_json(text: str) -> dict[str, str]:
    """Metadata as stored."""
    return {} if text == "{}" else msgspec.json.decode(text, type=dict[str, str])
