"""What the clock alone makes true of an account: leases lapse, grants end and start.

Owns: bringing an account forward to ``now``, in order of the instants at which things happened.
Correct whether or not anyone has done it before: reads and writes use the same function.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, GrantState, Source
from gpucredits.core.reasons import invariant
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rules.lots import arrive, collect, end, end_held_over

LAPSE, END, START = 0, 1, 2  # at one instant: leases lapse, then grants end, then grants start


def roll(book: Book, account: Account, now: int) -> None:
    """Bring an account forward to ``now``; opens a savepoint of the book if anything is due."""
    if now < account.due_at:
        return
    invariant(account.account_id in book.complete, "a due account has all its leases in the book")
    if book.savepoint is None:
        book.begin()
    book.touch(account)
    for at, kind, _, row in sorted(due(book, account, now), key=lambda item: item[:3]):
        match row:
            case Reservation():
                lapse(book, account, row)
            case Grant() if kind == END:
                if row.remaining:
                    end(book, account, row, at)
            case Grant():
                start(book, account, row, at)
    account.due_at = next_due(book, account)
    account.version += 1


def due(book: Book, account: Account, now: int) -> list[tuple[int, int, int, Reservation | Grant]]:
    """(instant, order, id, row) of everything that has come to pass and is not yet written."""
    found: list[tuple[int, int, int, Reservation | Grant]] = [
        (lease.expires_at, LAPSE, lease.reservation_id, lease)
        for lease in live_leases(book, account)
        if lease.expires_at <= now
    ]
    for grant in book.grants[account.account_id]:
        if grant.state is GrantState.PENDING and grant.starts_at <= now:
            found.append((grant.starts_at, START, grant.grant_id, grant))
        if grant.state is not GrantState.HELD_OVER and grant.expires_at <= now:
            found.append((grant.expires_at, END, grant.grant_id, grant))
    return found


def next_due(book: Book, account: Account) -> int:
    """The earliest instant at which the clock may change the account again."""
    soonest = bounds.NEVER_US
    for lease in live_leases(book, account):
        soonest = min(soonest, lease.expires_at)
    for grant in book.grants[account.account_id]:
        if grant.state is GrantState.PENDING:
            soonest = min(soonest, grant.starts_at)
        elif grant.state is GrantState.ACTIVE:
            soonest = min(soonest, grant.expires_at)
    return soonest


def live_leases(book: Book, account: Account) -> list[Reservation]:
    """The account's live leases, as far as they are in the book."""
    return [
        lease
        for lease in book.reservations.values()
        if lease.payer_id == account.account_id and lease.state is ReservationState.ACTIVE
    ]


def lapse(book: Book, account: Account, lease: Reservation) -> None:
    """A lease ended without a word: its hold is released, what was settled stays."""
    at = lease.expires_at
    released = release(book, account, lease, at)
    lease.state = ReservationState.EXPIRED
    lease.ended_at = at
    end_held_over(book, account, released, at)
    collect(book, account, at)


def release(book: Book, account: Account, lease: Reservation, at: int) -> int:
    """Give a lease's hold back to its payer; returns how much."""
    book.touch(lease)
    book.touch(account)
    released = lease.held
    account.reserved -= released
    lease.held = 0
    book.post(
        EntryType.RELEASE,
        account,
        released,
        at=at,
        reservation_id=lease.reservation_id,
        seq=lease.seq,
    )
    return released


def start(book: Book, account: Account, grant: Grant, at: int) -> None:
    """A grant's window opens: its credits become available."""
    book.touch(grant)
    book.touch(account)
    grant.state = GrantState.ACTIVE
    kind = EntryType.TOPUP if grant.source is Source.TOPUP else EntryType.ISSUE
    book.post(kind, account, grant.remaining, at=at, grant_id=grant.grant_id)
    book.place(grant)
    arrive(book, account, grant, at)
