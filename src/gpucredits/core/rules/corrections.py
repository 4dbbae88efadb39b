"""Rules for correcting what was charged: refunds and adjustments."""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.command import Adjust, Refund
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import DEBT, OVERRUN, Grant
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Adjusted, Refunded
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Reservation
from gpucredits.core.rules.lots import absorb, consume, join_paid
from gpucredits.core.rules.roll import roll


def refund(book: Book, command: Refund, now: int) -> Refunded | Refused:
    """Give credits back to the grants that paid, in the reverse of the recorded order."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation.")
    account = book.accounts[lease.payer_id]
    roll(book, account, now)
    if command.amount > lease.charged:
        return Refused(
            Reason.REFUND_EXCEEDS,
            f"Only {format_credits(lease.charged)} of what was charged has not been given "
            f"back; {format_credits(command.amount)} is more.",
            {
                "refundable": format_credits(lease.charged),
                "requested": format_credits(command.amount),
            },
        )
    book.touch(lease)
    book.touch(account)
    lots = unwind(lease, command.amount)
    for grant_id, amount in lots:
        give_back(book, account, lease, grant_id, amount, now)
    lease.refunded += command.amount
    account.spent -= command.amount
    account.version += 1
    return Refunded(lease.reservation_id, command.amount, tuple(lots))


def unwind(lease: Reservation, amount: int) -> list[tuple[int, int]]:
    """Take ``amount`` off the end of the record of who paid."""
    paid = list(lease.paid)
    lots: list[tuple[int, int]] = []
    while amount:
        grant_id, part = paid.pop()
        if part > amount:
            paid.append((grant_id, part - amount))
            part = amount
        lots.append((grant_id, part))
        amount -= part
    lease.paid = tuple(paid)
    return lots


def give_back(
    book: Book, account: Account, lease: Reservation, grant_id: int, amount: int, now: int
) -> None:
    """Undo one payment: of a grant, of a debt, or of the house."""
    if grant_id == DEBT:
        part = min(amount, account.debt)
        account.debt -= part
        post_refund(book, account, lease, part, DEBT, now)
        amount -= part
    elif grant_id == OVERRUN:
        part = min(amount, account.overrun)
        account.overrun -= part
        post_refund(book, account, lease, part, OVERRUN, now)
        book.post(
            EntryType.COLLECT,
            account,
            part,
            at=now,
            grant_id=OVERRUN,
            reservation_id=lease.reservation_id,
        )
        amount -= part
    else:
        return_to_grant(book, account, lease, book.grant(grant_id), amount, now)
        return
    if amount:  # the debt was paid off since, by grants that are not recorded with the lease
        grant = Grant(
            grant_id=book.next_id(),
            account_id=account.account_id,
            amount=amount,
            remaining=0,
            starts_at=now,
            created_at=now,
        )
        book.add(grant)
        account.funded_until = max(account.funded_until, grant.expires_at)
        return_to_grant(book, account, lease, grant, amount, now)


def return_to_grant(
    book: Book, account: Account, lease: Reservation, grant: Grant, amount: int, now: int
) -> None:
    """Put credits back into a grant; one that has ended lets them expire at once."""
    post_refund(book, account, lease, amount, grant.grant_id, now)
    if grant.expires_at <= now:
        book.post(EntryType.EXPIRE, account, amount, at=now, grant_id=grant.grant_id)
        return
    book.touch(grant)
    grant.remaining += amount
    account.remaining += amount
    account.due_at = min(account.due_at, grant.expires_at)
    book.place(grant)
    absorb(book, account, grant, now)


def post_refund(
    book: Book, account: Account, lease: Reservation, amount: int, grant_id: int, now: int
) -> None:
    """Write one lot of a refund down."""
    book.post(
        EntryType.REFUND,
        account,
        amount,
        at=now,
        grant_id=grant_id,
        reservation_id=lease.reservation_id,
    )


def adjust(book: Book, command: Adjust, now: int) -> Adjusted | Refused:
    """Charge more for a lease: from grants, then debt within the limit, then the house covers."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation.")
    account = book.accounts[lease.payer_id]
    roll(book, account, now)
    book.touch(lease)
    book.touch(account)
    covered = min(command.amount, max(account.spendable, 0))
    taken = consume(book, account, covered) if covered else []
    overrun = command.amount - covered
    if overrun:
        book.post(
            EntryType.OVERRUN,
            account,
            overrun,
            at=now,
            grant_id=OVERRUN,
            reservation_id=lease.reservation_id,
        )
        account.overrun += overrun
        taken.append((OVERRUN, overrun))
    for grant_id, amount in taken:
        book.post(
            EntryType.ADJUST,
            account,
            amount,
            at=now,
            grant_id=grant_id,
            reservation_id=lease.reservation_id,
        )
    lease.paid = join_paid(lease.paid, taken)
    lease.adjusted += command.amount
    account.spent += command.amount
    account.version += 1
    return Adjusted(lease.reservation_id, command.amount, tuple(taken))
