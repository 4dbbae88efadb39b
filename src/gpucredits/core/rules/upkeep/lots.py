"""How credits enter, leave and move between an account's grants.

Owns: consumption in the one total order, the repayment of debt by arriving credits, expiry. Every
change of a grant's remainder keeps its account's total in step.
Must not: know leases (claims does).
"""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import DEBT, Grant, GrantState, Source


def consume(book: Book, account: Account, amount: int) -> list[tuple[int, int]]:
    """Take ``amount`` from the account's active grants in order; what they lack becomes debt.

    The caller has made sure that the floor allows it. Returns (grant id, taken) in order.
    """
    lots = book.grants[account.account_id]
    taken: list[tuple[int, int]] = []
    left = amount
    while left and lots:
        grant = lots[0]
        if grant.state is not GrantState.ACTIVE:
            break
        book.touch(grant)
        part = min(grant.remaining, left)
        grant.remaining -= part
        left -= part
        taken.append((grant.grant_id, part))
        if not grant.remaining:
            book.place(grant)
            lots = book.grants[account.account_id]
    account.remaining -= amount - left
    if left:
        account.debt += left
        taken.append((DEBT, left))
    return taken


def arrive(book: Book, account: Account, grant: Grant, at: int) -> None:
    """Credits of an active grant join the balance: they repay debt first, then overruns."""
    account.remaining += grant.remaining
    absorb(book, account, grant, at)


def absorb(book: Book, account: Account, grant: Grant, at: int, *, spare: int = 0) -> None:
    """Let a grant pay what its account owes, but for ``spare``: debt, then the house's overrun."""
    repaid = min(account.debt, grant.remaining - spare)
    if repaid:
        account.debt -= repaid
        draw(book, account, grant, repaid)
        book.post(EntryType.REPAY, account, repaid, at=at, grant_id=grant.grant_id)
    collected = min(account.overrun, grant.remaining - spare, max(account.available, 0))
    if collected:
        account.overrun -= collected
        draw(book, account, grant, collected)
        book.post(EntryType.COLLECT, account, collected, at=at, grant_id=grant.grant_id)


def draw(book: Book, account: Account, grant: Grant, amount: int) -> None:
    """Take from one grant, whatever its place in the order."""
    book.touch(grant)
    grant.remaining -= amount
    account.remaining -= amount
    if not grant.remaining:
        grant.claims = 0
        book.place(grant)


def collect(book: Book, account: Account, at: int) -> None:
    """A hold was let go of: the house takes what it is owed from what is now free."""
    while account.overrun and account.available > 0:
        grant = book.grants[account.account_id][0]
        part = min(account.overrun, grant.remaining, account.available)
        account.overrun -= part
        draw(book, account, grant, part)
        book.post(EntryType.COLLECT, account, part, at=at, grant_id=grant.grant_id)


def expire(book: Book, account: Account, grant: Grant, amount: int, at: int) -> None:
    """Take expired credits out of an ended grant; what is left of it is held over."""
    book.touch(grant)
    book.touch(account)
    grant.remaining -= amount
    account.remaining -= amount
    grant.state = GrantState.HELD_OVER if grant.remaining else GrantState.ENDED
    if not grant.remaining:
        grant.claims = 0
    book.place(grant)
    book.post(EntryType.EXPIRE, account, amount, at=at, grant_id=grant.grant_id)


def join_paid(
    paid: tuple[tuple[int, int], ...], taken: list[tuple[int, int]], since: int = 0
) -> tuple[tuple[int, int], ...]:
    """The record of who paid, with what was just taken; runs of one grant are one item.

    Items before ``since`` are another payer's.
    """
    lots = list(paid)
    for grant_id, amount in taken:
        if len(lots) > since and lots[-1][0] == grant_id:
            lots[-1] = (grant_id, lots[-1][1] + amount)
        else:
            lots.append((grant_id, amount))
    return tuple(lots)


def start(book: Book, account: Account, grant: Grant, at: int) -> None:
    """A grant's window opens: its credits become available."""
    book.touch(grant)
    book.touch(account)
    grant.state = GrantState.ACTIVE
    kind = EntryType.TOPUP if grant.source is Source.TOPUP else EntryType.ISSUE
    book.post(kind, account, grant.remaining, at=at, grant_id=grant.grant_id)
    book.place(grant)
    arrive(book, account, grant, at)
