"""What a suspension does to work that runs: every lease below the account ends within its grace.

A suspension by an operator and one by an unpaid statement do the same. The node hears of it with
its next heartbeat; a node that never reports again ends with its lease all the same.
Must not: decide who is suspended (accounts and standing do).
"""

from __future__ import annotations

from operator import attrgetter

from gpucredits.core.account import Account, is_below
from gpucredits.core.book import Book, NotInBook
from gpucredits.core.reservation import Decision, ReservationState, Why
from gpucredits.core.rules.upkeep.roll import lapse, roll


def shorten_below(book: Book, account: Account, now: int) -> None:
    """Let every live lease at or below an account end after its grace, or when it would anyway."""
    if not book.counts_anew:
        raise NotInBook
    why = Why.ACCOUNT_DELINQUENT if account.is_overdue else Why.ACCOUNT_SUSPENDED
    live = [each for each in book.reservations.values() if each.state is ReservationState.ACTIVE]
    below = [each for each in live if is_below(each.account, account.path)]
    for payer_id in sorted({lease.payer_id for lease in below}):
        roll(book, book.accounts[payer_id], now)
    for lease in sorted(below, key=attrgetter("reservation_id")):
        if lease.state is not ReservationState.ACTIVE:
            continue
        payer = book.accounts[lease.payer_id]
        book.touch(lease)
        book.touch(payer)
        lease.expires_at = min(lease.expires_at, now + lease.grace_ms * 1_000)
        lease.decision, lease.why, lease.clears_at = Decision.DRAIN, why, 0
        payer.version += 1
        if lease.expires_at > now:
            payer.due_at = min(payer.due_at, lease.expires_at)
        else:
            lease.decision = Decision.STOP
            lapse(book, payer, lease, now, seq=0)
