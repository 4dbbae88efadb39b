"""Rules of the lease: reserve, heartbeat, settle, cancel.

Starts may be refused; a heartbeat inside its lease is always settled.
"""

from __future__ import annotations

from gpucredits.core.account import Account, lineage
from gpucredits.core.book import Book, LateUse
from gpucredits.core.command import Beat, Cancel, Reserve, Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import OVERRUN
from gpucredits.core.money import cost, format_credits
from gpucredits.core.outcome import Beaten, Closed, Reserved
from gpucredits.core.price import Price, applicable_price
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import (
    Decision,
    Reservation,
    ReservationState,
    hold_wanted,
    lease_end,
    used_bound_ms,
)
from gpucredits.core.rules.accounts import find, insufficient, suspended_above
from gpucredits.core.rules.lots import consume, end_held_over, join_paid
from gpucredits.core.rules.roll import lapse, release, roll

WENT_BACK = "used_ms_went_back"
BEYOND_ELAPSED = "used_ms_beyond_elapsed"


def reserve(book: Book, command: Reserve, now: int) -> Reserved | Refused:
    """Give a lease whose hold covers one window ahead, at the price in force now."""
    account = find_open(book, command.account)
    if isinstance(account, Refused):
        return account
    price = applicable_price(
        book.prices,
        account=account.path,
        gpu_type=command.gpu_type,
        region=command.region,
        now=now,
    )
    if price is None:
        return Refused(
            Reason.PRICE_UNKNOWN,
            f"No price is in force for {command.gpu_type} in region {command.region}.",
            {"gpu_type": command.gpu_type, "region": command.region},
        )
    payer = find_payer(book, command, now)
    if isinstance(payer, Refused):
        return payer
    roll(book, payer, now)
    lease = draft(command, account, payer, price, now)
    needed = hold_wanted(lease, 0, 0)
    lease.held = needed
    lease.expires_at = lease_end(lease, now)
    if lease.expires_at <= now:
        return Refused(
            Reason.MAX_AMOUNT_TOO_SMALL,
            f"max_amount {format_credits(lease.max_amount)} does not pay for a millisecond of "
            f"{lease.gpu_count} {lease.gpu_type}.",
            {"max_amount": format_credits(lease.max_amount)},
        )
    if payer.spendable < needed:
        return insufficient(payer, payer.spendable, needed)
    lease.reservation_id = book.next_id()
    book.touch(payer)
    payer.reserved += needed
    payer.due_at = min(payer.due_at, lease.expires_at)
    payer.version += 1
    book.add(lease)
    book.post(EntryType.RESERVE, payer, needed, at=now, reservation_id=lease.reservation_id)
    return Reserved(lease, account.path, payer.path, (lease.expires_at - now) // 1_000)


def find_open(book: Book, path: str) -> Account | Refused:
    """The account at a path, unless it or one above it is suspended."""
    account = find(book, path)
    if isinstance(account, Account) and (above := suspended_above(book, path)):
        return Refused(
            Reason.ACCOUNT_SUSPENDED,
            f"{above} is suspended and admits nothing.",
            {"account": above},
        )
    return account


def draft(
    command: Reserve, account: Account, payer: Account, price: Price, now: int
) -> Reservation:
    """The lease as asked for, with the price pinned and nothing held yet."""
    return Reservation(
        reservation_id=0,
        account=account.path,
        account_id=account.account_id,
        payer_id=payer.account_id,
        job_id=command.job_id,
        gpu_type=command.gpu_type,
        gpu_count=command.gpu_count,
        region=command.region,
        node=command.node,
        price=price.credits_per_gpu_hour,
        price_id=price.price_id,
        window_ms=command.window_ms,
        escrow_windows=command.escrow_windows,
        max_amount=command.max_amount,
        admitted_at=now,
        expires_at=now,
        metadata=command.metadata,
    )


def find_payer(book: Book, command: Reserve, now: int) -> Account | Refused:
    """The account that pays: the one named, or the nearest upward that can hold credits."""
    if command.payer:
        if command.payer not in lineage(command.account) or command.payer not in book.paths:
            return Refused(
                Reason.PAYER_INVALID,
                f"{command.payer} cannot pay for {command.account}: a payer is the account itself "
                "or one above it.",
                {"account": command.account, "payer": command.payer},
            )
        return book.paths[command.payer]
    for path in lineage(command.account):
        account = book.paths[path]
        if account.pays(now):
            return account
    return Refused(
        Reason.NO_PAYER,
        f"Neither {command.account} nor any account above it has a grant, a budget or a credit "
        "limit to pay from.",
        {"account": command.account},
    )


def beat(book: Book, command: Beat, now: int) -> Beaten | Refused:
    """Settle what was used, and renew the lease as far as its payer can fund it."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation.")
    payer = book.accounts[lease.payer_id]
    if now >= payer.due_at:
        roll(book, payer, now)
    if lease.state is not ReservationState.ACTIVE:
        note_late_use(book, lease, command.seq, command.used_ms)
        return answer(lease, Decision.STOP, now, reason=lease.state.name.lower())
    if command.seq <= lease.seq:
        return answer(lease, lease.decision, now, duplicate=True)
    used_ms, flag = believable(lease, command.used_ms, now)
    book.touch(lease)
    book.touch(payer)
    lease.seq = command.seq
    reason = charge(book, payer, lease, used_ms, now)
    end = lease_end(lease, now)
    if reason == Reason.ACCOUNT_SUSPENDED:
        end = min(end, lease.expires_at)
    lease.expires_at = end
    if end <= now:
        lease.decision = Decision.STOP
        lapse(book, payer, lease)
    else:
        lease.decision = Decision.DRAIN if reason else Decision.CONTINUE
        payer.due_at = min(payer.due_at, end)
    return answer(lease, lease.decision, now, reason=reason, flag=flag)


def charge(book: Book, payer: Account, lease: Reservation, used_ms: int, now: int) -> str:
    """Settle use up to ``used_ms`` and renew the hold; returns why it could not be renewed."""
    before = lease.held
    due = cost(lease.gpu_count * lease.price, used_ms) - lease.settled
    funds = before + max(payer.spendable, 0)
    covered = min(due, funds)
    wanted = hold_wanted(lease, used_ms, lease.settled + due)
    held = min(wanted, funds - covered)
    reason = ""
    if book.suspended and suspended_above(book, lease.account):
        held = min(held, max(before - covered, 0))
        reason = Reason.ACCOUNT_SUSPENDED.value
    elif held < wanted:
        reason = Reason.INSUFFICIENT_CREDITS.value
    elif lease.max_amount and lease.settled + due + held >= lease.max_amount:
        reason = "max_amount"
    post_charge(book, payer, lease, due=due, covered=covered, held=held, now=now)
    lease.used_ms = used_ms
    return reason


def post_charge(
    book: Book, payer: Account, lease: Reservation, *, due: int, covered: int, held: int, now: int
) -> None:
    """Move the money of a charge: grants pay, the house covers the rest, the hold becomes ``held``.

    The first row carries the renewal of the hold beside its settlement.
    """
    overrun = due - covered
    reserve_change = held - lease.held + due
    taken = consume(book, payer, covered) if covered else []
    if overrun:
        book.post(
            EntryType.OVERRUN,
            payer,
            overrun,
            at=now,
            grant_id=OVERRUN,
            reservation_id=lease.reservation_id,
            seq=lease.seq,
        )
        payer.overrun += overrun
        taken.append((OVERRUN, overrun))
    if not taken and reserve_change:
        kind = EntryType.RESERVE if reserve_change > 0 else EntryType.RELEASE
        book.post(
            kind,
            payer,
            abs(reserve_change),
            at=now,
            reservation_id=lease.reservation_id,
            seq=lease.seq,
        )
    for grant_id, amount in taken:
        book.post(
            EntryType.SETTLE,
            payer,
            amount,
            at=now,
            reserve=reserve_change,
            grant_id=grant_id,
            reservation_id=lease.reservation_id,
            seq=lease.seq,
        )
        reserve_change = 0
    payer.reserved += held - lease.held
    payer.spent += due
    payer.version += 1
    end_held_over(book, payer, lease.held - due - held, now)
    lease.held = held
    lease.settled += due
    if taken:
        lease.paid = join_paid(lease.paid, taken)


def believable(lease: Reservation, used_ms: int, now: int) -> tuple[int, str]:
    """The use that is accepted, and a flag when it is not what was reported."""
    if used_ms < lease.used_ms:
        return lease.used_ms, WENT_BACK
    bound = used_bound_ms(lease, now)
    if used_ms > bound:
        return max(bound, lease.used_ms), BEYOND_ELAPSED
    return used_ms, ""


def answer(
    lease: Reservation,
    decision: Decision,
    now: int,
    *,
    reason: str = "",
    duplicate: bool = False,
    flag: str = "",
) -> Beaten:
    """What the node is told."""
    live = lease.state is ReservationState.ACTIVE
    return Beaten(
        decision,
        lease.settled,
        lease.held,
        max(lease.expires_at - now, 0) // 1_000 if live else 0,
        lease.state,
        reason,
        duplicate,
        flag,
    )


def note_late_use(book: Book, lease: Reservation, seq: int, used_ms: int) -> None:
    """Keep use that was reported after a lease lapsed, capped at the lapse, for the reconciler."""
    if lease.state is not ReservationState.EXPIRED or seq <= lease.seq:
        return
    used_ms = min(used_ms, used_bound_ms(lease, lease.expires_at))
    if used_ms > lease.used_ms:
        book.late_use.append(LateUse(lease.reservation_id, seq, used_ms, lease.ended_at))


def settle(book: Book, command: Settle, now: int) -> Closed | Refused:
    """The job ended: charge what was used and release the rest of the hold."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation.")
    payer = book.accounts[lease.payer_id]
    roll(book, payer, now)
    seq = lease.seq + 1 if command.seq is None else command.seq
    reported = lease.used_ms if command.used_ms is None else command.used_ms
    if lease.state is ReservationState.EXPIRED:
        note_late_use(book, lease, seq, reported)
        return closed(lease, 0)
    if lease.state is not ReservationState.ACTIVE:
        return ended(lease)
    used_ms, _ = believable(lease, reported, now)
    book.touch(lease)
    book.touch(payer)
    lease.seq = max(lease.seq, seq)
    due = cost(lease.rate_per_hour, used_ms) - lease.settled
    covered = min(due, lease.held + max(payer.spendable, 0))
    left = max(lease.held - due, 0)
    post_charge(book, payer, lease, due=due, covered=covered, held=left, now=now)
    lease.used_ms = used_ms
    return close(book, payer, lease, ReservationState.SETTLED, now)


def cancel(book: Book, command: Cancel, now: int) -> Closed | Refused:
    """The job never started: release the hold."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation.")
    payer = book.accounts[lease.payer_id]
    roll(book, payer, now)
    if lease.state is not ReservationState.ACTIVE:
        return ended(lease)
    if lease.used_ms:
        return Refused(
            Reason.RESERVATION_STARTED,
            f"The job has run for {lease.used_ms} ms; settle the reservation instead.",
            {"used_ms": lease.used_ms},
        )
    return close(book, payer, lease, ReservationState.CANCELED, now)


def close(
    book: Book, payer: Account, lease: Reservation, state: ReservationState, now: int
) -> Closed:
    """End a live lease and give its hold back."""
    released = release(book, payer, lease, now)
    lease.state = state
    lease.ended_at = now
    lease.expires_at = now
    payer.version += 1
    end_held_over(book, payer, released, now)
    return closed(lease, released)


def closed(lease: Reservation, released: int) -> Closed:
    """The final state of a lease."""
    return Closed(lease.reservation_id, lease.state, lease.settled, released, lease.used_ms)


def ended(lease: Reservation) -> Refused:
    """Refuse what only a live lease can do."""
    return Refused(
        Reason.RESERVATION_ENDED,
        f"The reservation is {lease.state.name.lower()} already.",
        {"state": lease.state.name.lower()},
    )
