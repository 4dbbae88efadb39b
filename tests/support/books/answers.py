"""Outcomes of the rules and rows of a book, told in the words of the model ledger."""

from __future__ import annotations

from typing import Any

from gpucredits.core.book import Book
from gpucredits.core.grant import GrantState
from gpucredits.core.heartbeat import BeatResult
from gpucredits.core.outcome import (
    Accepted,
    Adjusted,
    Closed,
    Granted,
    Outcome,
    Refunded,
    Reserved,
    ToppedUp,
    Transferred,
)
from gpucredits.core.reasons import Refused
from gpucredits.core.rules.credit.funding import stretches
from oracle.ledger_model import Model

Told = dict[str, Any]


def told(outcome: Outcome) -> Told:
    """An outcome as the model would give it."""
    if isinstance(outcome, Refused):
        return {"refused": outcome.reason.value}
    return told_accepted(outcome)


def told_accepted(outcome: Accepted) -> Told:
    """What a command that was carried out answers."""
    answer: Told = {}
    match outcome:
        case Granted():
            answer = {"grant": outcome.grant.grant_id}
        case ToppedUp():
            grant = outcome.grant.grant_id if outcome.grant else 0
            answer = {"topup": outcome.topup.topup_id, "grant": grant}
        case Transferred() | Refunded() | Adjusted():
            answer = {"lots": list(outcome.lots)}
        case Reserved():
            lease = outcome.reservation
            answer = {
                "lease": lease.reservation_id,
                "payer": outcome.payer,
                "held": lease.held,
                "ends": lease.expires_at,
            }
        case BeatResult():
            answer = {
                "decision": outcome.decision.value,
                "settled": outcome.settled,
                "held": outcome.held,
                "left": outcome.expires_in_ms,
                "reason": outcome.reason,
                "duplicate": outcome.duplicate,
                "flag": outcome.flagged,
            }
        case Closed():
            answer = {
                "phase": outcome.state.name.lower(),
                "settled": outcome.settled,
                "released": outcome.released,
            }
        case _:
            pass
    return answer


def told_book(book: Book) -> Told:
    """Every balance, grant and lease of a book that was rolled forward."""
    paths = {account.account_id: account.path for account in book.accounts.values()}
    return {
        "accounts": {
            account.path: [
                *(account.available, account.reserved, account.spent),
                *(account.debt, account.overrun, account.spendable, account.funding.name.lower()),
            ]
            for account in book.accounts.values()
        },
        "grants": {
            grant.grant_id: [
                *(grant.amount, grant.remaining, grant.state is GrantState.PENDING),
                *(grant.starts_at, grant.expires_at, grant.priority, grant.source.name.lower()),
                *(grant.origin_id, paths[grant.account_id]),
            ]
            for grant in book.lots.values()
        },
        "leases": {
            lease.reservation_id: [
                *(lease.state.name.lower(), lease.held, lease.settled, lease.used_ms, lease.seq),
                *(lease.expires_at, lease.decision.value, list(lease.paid)),
                [
                    paths[number]
                    for number, since, until in stretches(lease)
                    for _ in range(since, until)
                ],
                paths[lease.payer_id],
            ]
            for lease in book.reservations.values()
        },
        "late": [(use.reservation_id, use.seq, use.used_ms) for use in book.late_use],
    }


def told_model(model: Model) -> Told:
    """Every balance, lot and lease of the model, in the same shape."""
    return {
        "accounts": {
            path: [
                *(model.available(path), model.reserved(path), model.spent(path)),
                *(wallet.debt, wallet.overrun, model.room(path)),
                "shared" if wallet.shares else "own",
            ]
            for path, wallet in model.wallets.items()
        },
        "grants": {
            lot.number: [
                *(lot.amount, lot.left, lot.phase == "pending"),
                *(lot.starts, lot.ends, lot.priority, lot.source, lot.origin, lot.owner),
            ]
            for lot in model.lots
        },
        "leases": {
            number: [
                *(lease.phase, lease.held, lease.cost(lease.used), lease.used, lease.seq),
                *(lease.ends, lease.decision, lease.bills, lease.owners, lease.payer),
            ]
            for number, lease in model.leases.items()
        },
        "late": model.late,
    }
