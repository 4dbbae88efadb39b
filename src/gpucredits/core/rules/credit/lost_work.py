"""The rule that refunds lost work: a job's use after its last checkpoint.

Owns: the amount of a lease's lost use, and the refund to the grants that paid. A lease is refunded
for lost work once.
Must not: judge the cause, the evidence or the caps (core/reconciliation/lost_work.py does).
"""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.core.book import Book
from gpucredits.core.money import cost, format_credits
from gpucredits.core.outcome import LostWorkRefunded
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused
from gpucredits.core.reconciliation.commands import RefundLostWork
from gpucredits.core.reconciliation.lost_work import billed_ms
from gpucredits.core.reservation import ReservationState
from gpucredits.core.rule import Rule, State, Touches
from gpucredits.core.rules.credit.corrections import charge_before, give_all_back
from gpucredits.core.rules.credit.funding import stretches
from gpucredits.core.rules.upkeep.roll import roll


def refund_lost_work(book: Book, command: RefundLostWork, now: int) -> LostWorkRefunded | Refused:
    """Give back the cost of the use after the last checkpoint, never more than was charged."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    for account_id, _, _ in stretches(lease):
        roll(book, book.accounts[account_id], now)
    if lease.state is ReservationState.ACTIVE:
        return Refused(
            Reason.RESERVATION_ACTIVE,
            "The reservation is active. Lost work can be claimed after it has ended.",
        )
    if lease.lost_ms:
        return Refused(
            Reason.LOSS_REFUNDED,
            f"Lost work of this reservation was given back before: {lease.lost_ms} ms.",
            {"lost_ms": lease.lost_ms},
        )
    whole_ms = billed_ms(lease)
    lost_ms = min(whole_ms - command.checkpoint_ms, command.limit_ms)
    if lost_ms <= 0:
        return Refused(
            Reason.LOSS_REFUSED,
            f"The bill covers {whole_ms} ms and the last checkpoint is at "
            f"{command.checkpoint_ms} ms: nothing was lost.",
            {"billed_ms": whole_ms, "checkpoint_ms": command.checkpoint_ms},
        )
    amount = cost(lease.rate, whole_ms) - cost(lease.rate, whole_ms - lost_ms)
    amount = min(amount, lease.charged)
    book.touch(lease)
    lots = give_all_back(book, lease, amount, now)
    lease.refunded += amount
    lease.lost_ms = lost_ms
    return LostWorkRefunded(lease.reservation_id, lost_ms, amount, tuple(lots))


def touches_lost(command: RefundLostWork) -> Touches:
    """The lease, and the entries that charged it."""
    lease = (command.reservation_id,)
    return Touches(leases=lease, corrected=lease)


def lost_after(org_id: int, outcome: LostWorkRefunded) -> tuple[str, State]:
    """The lease, its lost use, and the refund."""
    lease_id = ids.format_id(ids.RESERVATION, org_id, outcome.reservation_id)
    return lease_id, {"lost_ms": outcome.lost_ms, "amount": format_credits(outcome.amount)}


RULES: tuple[Rule, ...] = (
    Rule(
        RefundLostWork,
        refund_lost_work,
        touches_lost,
        "credits.refund_lost_work",
        charge_before,
        lost_after,
    ),
)
