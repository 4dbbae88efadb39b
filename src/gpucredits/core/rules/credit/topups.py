"""Rules for payments: recorded, confirmed, failed, reversed."""

from __future__ import annotations

from operator import attrgetter

from gpucredits.core import ids
from gpucredits.core.account import Account
from gpucredits.core.book import Book, invariant
from gpucredits.core.command import ConfirmTopUp, FailTopUp, ReverseTopUp, TopUp
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import OVERRUN, Grant, GrantState, Source
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import ToppedUp
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, Touches
from gpucredits.core.rules.credit.funding import find
from gpucredits.core.rules.credit.grants import grants_full, open_grant
from gpucredits.core.rules.upkeep.lots import consume, draw
from gpucredits.core.rules.upkeep.roll import roll
from gpucredits.core.statement import outstanding, received_by
from gpucredits.core.topup import TopUpRow, TopUpStatus


def top_up(book: Book, command: TopUp, now: int) -> ToppedUp | Refused:
    """Record a payment; a confirmed one makes its grant at once."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    if used := reference_used(book, command.payment_reference):
        return used
    roll(book, account, now)
    if command.bill and not outstanding(command.bill, received_by(account, command.refunded)):
        return Refused(
            Reason.STATEMENT_PAID,
            "The statement is paid: nothing is outstanding.",
            {"account": account.path},
        )
    if command.expires_at <= now:
        return Refused(
            Reason.WINDOW_ENDED,
            "The credits would end before they can be used: expires_at must be later than now.",
            {"account": account.path},
        )
    if command.confirmed and (full := grants_full(book, account)):
        return full
    payment = TopUpRow(
        topup_id=book.next_id(),
        account_id=account.account_id,
        amount=command.amount,
        payment_reference=command.payment_reference,
        expires_at=command.expires_at,
        priority=command.priority,
        created_at=now,
        metadata=command.metadata,
    )
    book.add(payment)
    grant = pay_out(book, account, payment, now) if command.confirmed else None
    return ToppedUp(payment, account.path, grant)


def reference_used(book: Book, reference: str) -> Refused | None:
    """Refuse to count a payment twice: a reference names one payment of an org.

    The reference of a failed payment may be used again.
    """
    for payment in book.topups.values():
        if payment.payment_reference == reference and payment.status is not TopUpStatus.FAILED:
            state = payment.status.name.lower()
            return Refused(
                Reason.REFERENCE_USED,
                f"A payment with the reference {reference!r} is recorded already, and is {state}: "
                "a reference names one payment.",
                {"payment_reference": reference, "status": state},
            )
    return None


def confirm_top_up(book: Book, command: ConfirmTopUp, now: int) -> ToppedUp | Refused:
    """A pending payment arrived: make its grant."""
    payment = find_top_up(book, command.topup_id, TopUpStatus.PENDING)
    if isinstance(payment, Refused):
        return payment
    account = book.accounts[payment.account_id]
    if payment.expires_at <= now:
        return Refused(
            Reason.WINDOW_ENDED,
            "The credits of this top-up would have ended by now; fail it and make a new one.",
            {"account": account.path},
        )
    roll(book, account, now)
    if full := grants_full(book, account):
        return full
    return ToppedUp(payment, account.path, pay_out(book, account, payment, now))


def fail_top_up(book: Book, command: FailTopUp, now: int) -> ToppedUp | Refused:
    """A pending payment will not arrive."""
    del now
    payment = find_top_up(book, command.topup_id, TopUpStatus.PENDING)
    if isinstance(payment, Refused):
        return payment
    book.touch(payment)
    payment.status = TopUpStatus.FAILED
    return ToppedUp(payment, book.accounts[payment.account_id].path)


def reverse_top_up(book: Book, command: ReverseTopUp, now: int) -> ToppedUp | Refused:
    """A payment was taken back: its unspent credits go, and its account owes the rest.

    Unheld credits of the payment are taken from its grant first, then from every account that
    transfers have moved them to. Credits that expired unspent are not owed.
    The account of the payment owes what was spent or is held. That is taken from its other unheld
    credits, then becomes debt within a postpaid limit; beyond the limit the house covers it and
    collects from later credits, so that no balance falls below its floor.
    """
    payment = find_top_up(book, command.topup_id, TopUpStatus.CONFIRMED)
    if isinstance(payment, Refused):
        return payment
    account = book.accounts[payment.account_id]
    roll(book, account, now)
    book.touch(account)
    book.touch(payment)
    payment.status = TopUpStatus.REVERSED
    grant = book.lots[payment.grant_id]
    kin = lineage_of(book, grant, now)
    returned = sum(take_back(book, account, grant, lot, now) for lot in kin)
    owed = payment.amount - returned - expired_of(book, kin)
    invariant(owed >= 0, "no more comes back of a payment than was paid")
    covered = min(owed, max(account.spendable, 0))
    for grant_id, part in consume(book, account, covered):
        book.post(EntryType.REVERSE, account, part, at=now, grant_id=grant_id)
    overrun = owed - covered
    account.overrun += overrun
    book.post(EntryType.OVERRUN, account, overrun, at=now, grant_id=OVERRUN)
    book.post(EntryType.REVERSE, account, overrun, at=now, grant_id=OVERRUN)
    account.version += 1
    return ToppedUp(payment, account.path, grant)


def lineage_of(book: Book, grant: Grant, now: int) -> list[Grant]:
    """A grant and every grant that transfers have made of it, older ones first.

    Accounts that still hold some of these credits are brought forward to ``now``.
    """
    kin = {grant.grant_id: grant}
    for lot in sorted(book.lots.values(), key=attrgetter("grant_id")):  # older ones first
        if lot.origin_id in kin:
            kin[lot.grant_id] = lot
            if lot.remaining:
                roll(book, book.accounts[lot.account_id], now)
    return list(kin.values())


def take_back(book: Book, account: Account, grant: Grant, lot: Grant, now: int) -> int:
    """Take back the credits of a payment's lot that no hold counts on; returns how many.

    Credits in another account move back to the grant of the payment first. A held-over lot stays:
    it is kept for holds.
    """
    if not lot.remaining or lot.state is not GrantState.ACTIVE:
        return 0  # its account need not be in the book
    holder = book.accounts[lot.account_id]
    part = min(lot.remaining, max(holder.available, 0))
    if not part:
        return 0
    book.touch(holder)
    draw(book, holder, lot, part)
    left_id = lot.grant_id
    if holder is not account:
        holder.version += 1
        book.post(
            EntryType.TRANSFER,
            holder,
            part,
            at=now,
            grant_id=left_id,
            other_id=account.account_id,
            other_grant_id=grant.grant_id,
        )
        left_id = grant.grant_id
    book.post(EntryType.REVERSE, account, part, at=now, grant_id=left_id)
    return part


def expired_of(book: Book, kin: list[Grant]) -> int:
    """The credits of some grants that expired unused and were not restored."""
    numbers = {lot.grant_id for lot in kin}
    signs = {EntryType.EXPIRE: 1, EntryType.RESTORE: -1}
    return sum(
        signs.get(entry.type, 0) * entry.amount
        for entry in (*book.past, *book.entries)
        if entry.grant_id in numbers
    )


def find_top_up(book: Book, topup_id: int, status: TopUpStatus) -> TopUpRow | Refused:
    """The top-up, if it stands where the command needs it to stand."""
    payment = book.topups.get(topup_id)
    if payment is None:
        return Refused(Reason.TOPUP_UNKNOWN, "There is no such top-up.")
    if payment.status is not status:
        return Refused(
            Reason.TOPUP_STATE,
            f"The top-up is {payment.status.name.lower()}; only one that is "
            f"{status.name.lower()} can do this.",
            {"status": payment.status.name.lower()},
        )
    return payment


def pay_out(book: Book, account: Account, payment: TopUpRow, now: int) -> Grant:
    """Make the grant of a confirmed payment."""
    book.touch(payment)
    grant = Grant(
        grant_id=book.next_id(),
        account_id=account.account_id,
        amount=payment.amount,
        remaining=payment.amount,
        starts_at=now,
        expires_at=payment.expires_at,
        priority=payment.priority,
        source=Source.TOPUP,
        created_at=now,
        metadata=payment.metadata,
    )
    payment.status = TopUpStatus.CONFIRMED
    payment.grant_id = grant.grant_id
    open_grant(book, account, grant, now)
    return grant


def touches_payment(command: TopUp) -> Touches:
    """The account, and the payment that has the same reference."""
    return Touches(paths=(command.account,), references=(command.payment_reference,))


def touches_topup(command: ConfirmTopUp | FailTopUp | ReverseTopUp) -> Touches:
    """The top-up with its account."""
    return Touches(topups=(command.topup_id,))


def topup_before(book: Book, command: ConfirmTopUp | FailTopUp | ReverseTopUp) -> State | None:
    """The status that the top-up is about to leave."""
    row = book.topups.get(command.topup_id)
    return None if row is None else {"status": row.status.name.lower()}


def topup_after(org_id: int, outcome: ToppedUp) -> tuple[str, State]:
    """The account and its top-up."""
    topup = outcome.topup
    return outcome.path, {
        "topup_id": ids.format_id(ids.TOPUP, org_id, topup.topup_id),
        "amount": format_credits(topup.amount),
        "payment_reference": topup.payment_reference,
        "status": topup.status.name.lower(),
    }


RULES: tuple[Rule, ...] = (
    Rule(TopUp, top_up, touches_payment, "topup.record", after=topup_after),
    Rule(ConfirmTopUp, confirm_top_up, touches_topup, "topup.confirm", topup_before, topup_after),
    Rule(FailTopUp, fail_top_up, touches_topup, "topup.fail", topup_before, topup_after),
    Rule(ReverseTopUp, reverse_top_up, touches_topup, "topup.reverse", topup_before, topup_after),
)
