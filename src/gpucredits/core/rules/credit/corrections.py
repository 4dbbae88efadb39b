"""Rules for correcting what was charged: refunds and adjustments."""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.core import ids
from gpucredits.core.account import Account
from gpucredits.core.book import Book, invariant
from gpucredits.core.command import Adjust, Refund
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import DEBT, OVERRUN, Grant
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Adjusted, Refunded
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused
from gpucredits.core.reconciliation.commands import Reconcile, RefundLostWork
from gpucredits.core.reservation import Reservation
from gpucredits.core.rule import Rule, State, Touches
from gpucredits.core.rules.credit.funding import own_since, stretches
from gpucredits.core.rules.upkeep.lots import absorb, consume, expire, join_paid
from gpucredits.core.rules.upkeep.roll import roll


def refund(book: Book, command: Refund, now: int) -> Refunded | Refused:
    """Give credits back to the grants that paid, in the reverse of the recorded order."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    for account_id, _, _ in stretches(lease):
        roll(book, book.accounts[account_id], now)
    if command.amount > lease.charged:
        return Refused(
            Reason.REFUND_EXCEEDS,
            f"At most {format_credits(lease.charged)} of the charge can still be given back; "
            f"{format_credits(command.amount)} is more.",
            {
                "refundable": format_credits(lease.charged),
                "requested": format_credits(command.amount),
            },
        )
    book.touch(lease)
    lots = give_all_back(book, lease, command.amount, now)
    lease.refunded += command.amount
    return Refunded(lease.reservation_id, command.amount, tuple(lots))


def give_all_back(book: Book, lease: Reservation, amount: int, now: int) -> list[tuple[int, int]]:
    """Give ``amount`` back to the accounts that paid, the last one first."""
    paid = list(lease.paid)
    lots: list[tuple[int, int]] = []
    for account_id, since, _ in reversed(stretches(lease)):
        part = min(amount, sum(each for _, each in paid[since:]))
        if not part:
            continue
        account = book.accounts[account_id]
        book.touch(account)
        for grant_id, some in take_last(paid, part):
            lots += give_back(book, account, lease, grant_id, some, now)
        account.spent -= part
        account.version += 1
        amount -= part
    invariant(not amount, "what is given back was paid by somebody")
    lease.paid = tuple(paid)
    lease.payers = tuple((number, min(until, len(paid))) for number, until in lease.payers)
    return lots


def take_last(paid: list[tuple[int, int]], amount: int) -> list[tuple[int, int]]:
    """Take ``amount`` off the end of a record of who paid."""
    lots: list[tuple[int, int]] = []
    while amount:
        invariant(bool(paid), "what is given back was paid by somebody")
        grant_id, part = paid.pop()
        if part > amount:
            paid.append((grant_id, part - amount))
            part = amount
        lots.append((grant_id, part))
        amount -= part
    return lots


def give_back(
    book: Book, account: Account, lease: Reservation, grant_id: int, amount: int, now: int
) -> list[tuple[int, int]]:
    """Undo one payment, of a grant, of a debt, or of the house; returns who was given what.

    If grants have repaid a debt since, or the house has collected from them, they get it back.
    """
    if grant_id > 0:
        return_to_grant(book, account, lease, book.lots[grant_id], amount, now)
        return [(grant_id, amount)]
    part = min(amount, account.debt if grant_id == DEBT else account.overrun)
    if grant_id == DEBT:
        account.debt -= part
        post_refund(book, account, lease, part, DEBT, now)
    else:
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
    given = take_last(repayments(book, account, grant_id), amount - part)
    for repaid_by, some in given:
        return_to_grant(book, account, lease, book.lots[repaid_by], some, now, owed=grant_id)
    return [(grant_id, part), *given] if part else given


def repayments(book: Book, account: Account, owed: int) -> list[tuple[int, int]]:
    """The grants that repaid what an account owed, in order, unless they got it back."""
    kind = EntryType.REPAY if owed == DEBT else EntryType.COLLECT
    repaid: list[tuple[int, int]] = []
    for entry in (*book.past, *book.entries):
        if entry.account_id != account.account_id:
            continue
        if entry.type is kind and entry.grant_id > 0:
            repaid = list(join_paid(tuple(repaid), [(entry.grant_id, entry.amount)]))
        elif entry.type is EntryType.REFUND and entry.other_grant_id and entry.grant_id == owed:
            take_last(repaid, entry.amount)
    return repaid


def return_to_grant(  # who is given back what, and whether it paid itself or what was owed
    book: Book,
    account: Account,
    lease: Reservation,
    grant: Grant,
    amount: int,
    now: int,
    *,
    owed: int | None = None,
) -> None:
    """Put credits back into a grant, where they pay what its account owes.

    If the grant has ended, the credits that are left then expire at once.
    """
    if owed is None:
        post_refund(book, account, lease, amount, grant.grant_id, now)
    else:
        post_refund(book, account, lease, amount, owed, now, repaid_by=grant.grant_id)
    book.touch(grant)
    before = grant.remaining
    grant.remaining += amount
    account.remaining += amount
    book.place(grant)
    ended = grant.expires_at <= now  # what it had was kept for claims
    absorb(book, account, grant, now, spare=before if ended else 0)
    if not ended:
        account.due_at = min(account.due_at, grant.expires_at)
    else:
        expire(book, account, grant, grant.remaining - before, now)


def post_refund(
    book: Book,
    account: Account,
    lease: Reservation,
    amount: int,
    grant_id: int,
    now: int,
    *,
    repaid_by: int = 0,
) -> None:
    """Write one lot of a refund down."""
    book.post(
        EntryType.REFUND,
        account,
        amount,
        at=now,
        grant_id=grant_id,
        other_grant_id=repaid_by,
        reservation_id=lease.reservation_id,
    )


def adjust(book: Book, command: Adjust, now: int) -> Adjusted | Refused:
    """Charge more for a lease: from grants, then debt within the limit, then the house covers."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    account = book.accounts[lease.payer_id]
    roll(book, account, now)
    book.touch(lease)
    book.touch(account)
    taken = charge_more(book, account, lease, command.amount, now)
    lease.adjusted += command.amount
    return Adjusted(lease.reservation_id, command.amount, tuple(taken))


def charge_more(
    book: Book,
    account: Account,
    lease: Reservation,
    amount: int,
    now: int,
    *,
    restored: Sequence[tuple[int, int]] = (),
) -> list[tuple[int, int]]:
    """Charge ``amount`` in addition to what ``restored`` lots pay; returns who paid what.

    The caller has touched both rows and restored the lots.
    """
    covered = min(amount, max(account.spendable, 0))
    taken = [*restored, *(consume(book, account, covered) if covered else [])]
    overrun = amount - covered
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
    for grant_id, part in taken:
        book.post(
            EntryType.ADJUST,
            account,
            part,
            at=now,
            grant_id=grant_id,
            reservation_id=lease.reservation_id,
        )
    lease.paid = join_paid(lease.paid, taken, own_since(lease))
    account.spent += sum(part for _, part in taken)
    account.version += 1
    return taken


def touches_charges(command: Refund | Adjust) -> Touches:
    """The lease, and the entries that charged it."""
    lease = (command.reservation_id,)
    return Touches(leases=lease, corrected=lease)


def charge_before(
    book: Book, command: Refund | Adjust | Reconcile | RefundLostWork
) -> State | None:
    """What the lease has cost, and whom the correction concerns."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return None
    return {
        "account": lease.account,
        "payer": book.accounts[lease.payer_id].path,
        "settled": format_credits(lease.settled),
        "adjusted": format_credits(lease.adjusted),
        "refunded": format_credits(lease.refunded),
    }


def charge_after(org_id: int, outcome: Refunded | Adjusted) -> tuple[str, State]:
    """The lease, and the amount of the correction."""
    lease_id = ids.format_id(ids.RESERVATION, org_id, outcome.reservation_id)
    return lease_id, {"amount": format_credits(outcome.amount)}


RULES: tuple[Rule, ...] = (
    Rule(Refund, refund, touches_charges, "credits.refund", charge_before, charge_after),
    Rule(Adjust, adjust, touches_charges, "credits.adjust", charge_before, charge_after),
)
