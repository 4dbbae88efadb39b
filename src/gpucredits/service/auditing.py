"""What the audit log says of the ledger's administrative commands.

Owns: which commands are administrative acts, and what is written down of each: the state before
and after. The end of a lease is an act: the log says who settled or canceled it. Reserves and
heartbeats are not acts; the ledger is their record.
Must not: write anything; the batch saves the notes with the money.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpucredits.core import ids
from gpucredits.core.account import Account, Funding
from gpucredits.core.book import Book
from gpucredits.core.command import (
    AddBoost,
    Adjust,
    Cancel,
    Command,
    ConfirmTopUp,
    CreateAccount,
    EndBoost,
    EndBudget,
    EndQuota,
    EndRateLimit,
    FailTopUp,
    Issue,
    Refund,
    ReplaceBudgets,
    ReplaceQuotas,
    ReverseTopUp,
    ReviewStanding,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
    TopUp,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import (
    AccountSaved,
    Adjusted,
    Closed,
    Granted,
    Outcome,
    Refunded,
    Reviewed,
    ToppedUp,
    Transferred,
)
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.risk import Standing
from gpucredits.service.limit_auditing import limit_after, limit_before
from gpucredits.store.book_save import ActRow
from gpucredits.wire.account import suspended_by_scope
from gpucredits.wire.scalars import format_end, format_instant

ACTIONS: dict[type, str] = {
    CreateAccount: "account.create",
    UpdateAccount: "account.update",
    ReviewStanding: "account.standing",
    Issue: "credits.issue",
    TopUp: "topup.record",
    ConfirmTopUp: "topup.confirm",
    FailTopUp: "topup.fail",
    ReverseTopUp: "topup.reverse",
    Transfer: "credits.transfer",
    Refund: "credits.refund",
    Adjust: "credits.adjust",
    Settle: "reservation.settle",
    Cancel: "reservation.cancel",
    SetQuota: "quota.set",
    EndQuota: "quota.end",
    ReplaceQuotas: "quota.replace",
    SetRateLimit: "rate_limit.set",
    EndRateLimit: "rate_limit.end",
    AddBoost: "boost.add",
    EndBoost: "boost.end",
    SetBudget: "budget.set",
    EndBudget: "budget.end",
    ReplaceBudgets: "budget.replace",
}
State = dict[str, Any]


def state_before(book: Book, command: Command) -> State | None:
    """What a command is about to change, for those that change something that was there."""
    if isinstance(command, UpdateAccount):
        account = book.paths.get(command.path)
        return None if account is None else _terms(account)
    if isinstance(command, ReviewStanding):
        reviewed = book.paths.get(command.path)
        return None if reviewed is None else {"delinquent": reviewed.delinquent}
    if isinstance(command, ConfirmTopUp | FailTopUp | ReverseTopUp):
        row = book.topups.get(command.topup_id)
        return None if row is None else {"status": row.status.name.lower()}
    if isinstance(command, Settle | Cancel):
        ending = book.reservations.get(command.reservation_id)
        return None if ending is None else _parties(book, ending)
    if isinstance(command, Refund | Adjust):
        lease = book.reservations.get(command.reservation_id)
        return None if lease is None else _charged(book, lease)
    return limit_before(book, command)


def act_of(  # one argument for each column that the outcome does not give
    org_id: int,
    now: int,
    command: Command,
    outcome: Outcome,
    *,
    before: State | None,
    actor: str,
    request_id: str,
) -> ActRow | None:
    """The row of an administrative act; None for refusals and for everything else."""
    action = ACTIONS.get(type(command))
    if isinstance(outcome, Reviewed):
        after = _standing(outcome)
    else:
        after = None if action is None else state_after(org_id, outcome)
    if action is None or after is None:
        return None
    resource, state = after
    return (org_id, now, actor, action, resource, _json(before), _json(state), request_id)


def became_own(  # one argument for each column
    org_id: int, now: int, command: Command, path: str, *, actor: str, request_id: str
) -> ActRow:
    """The row of a project that spends its own credits only, from its first ones on."""
    old = {"funding": Funding.SHARED.name.lower()}
    new = {"funding": Funding.OWN.name.lower(), "because": ACTIONS[type(command)]}
    return (org_id, now, actor, "account.funding", path, _json(old), _json(new), request_id)


def state_after(org_id: int, outcome: Outcome) -> tuple[str, State] | None:
    """(resource, state) that an act left behind; the resource is an account where it can be."""
    match outcome:
        case AccountSaved(account=account):
            return account.path, _terms(account)
        case Granted(grant=grant, path=path):
            state = {
                "grant_id": ids.format_id(ids.GRANT, org_id, grant.grant_id),
                "amount": format_credits(grant.amount),
                "source": grant.source.name.lower(),
                "starts_at": format_instant(grant.starts_at),
                "expires_at": format_end(grant.expires_at),
                "priority": grant.priority,
            }
            return path, state
        case ToppedUp(topup=topup, path=path):
            state = {
                "topup_id": ids.format_id(ids.TOPUP, org_id, topup.topup_id),
                "amount": format_credits(topup.amount),
                "payment_reference": topup.payment_reference,
                "status": topup.status.name.lower(),
            }
            return path, state
        case Transferred(source=source, target=target, amount=amount):
            moved: State = {
                "transfer_id": ids.format_id(ids.TRANSFER, org_id, outcome.transfer_id),
                "to": target,
                "amount": format_credits(amount),
                "metadata": outcome.metadata,
            }
            return source, moved
        case Refunded() | Adjusted() | Closed():
            return _lease_after(org_id, outcome)
        case _:
            return limit_after(org_id, outcome)


def _lease_after(org_id: int, outcome: Refunded | Adjusted | Closed) -> tuple[str, State] | None:
    """What was corrected of a lease, or how it was ended; a lapsed one was ended by nobody."""
    text = ids.format_id(ids.RESERVATION, org_id, outcome.reservation_id)
    if not isinstance(outcome, Closed):
        return text, {"amount": format_credits(outcome.amount)}
    if outcome.state is ReservationState.EXPIRED:
        return None
    return text, {
        "state": outcome.state.name.lower(),
        "settled": format_credits(outcome.settled),
        "used_ms": outcome.used_ms,
    }


def _charged(book: Book, lease: Reservation) -> State:
    """What a lease has cost, and whom: those whom a correction of it concerns."""
    return _parties(book, lease) | {
        "settled": format_credits(lease.settled),
        "adjusted": format_credits(lease.adjusted),
        "refunded": format_credits(lease.refunded),
    }


def _parties(book: Book, lease: Reservation) -> State:
    """Whose job a lease is for, and who pays."""
    return {"account": lease.account, "payer": book.accounts[lease.payer_id].path}


def _terms(account: Account) -> State:
    return {
        "model": account.model.name.lower(),
        "credit_limit": format_credits(account.credit_limit),
        "overdraft_limit": format_credits(account.overdraft_limit),
        "window_max_seconds": account.window_max_ms // 1_000,
        "status": account.status.name.lower(),
        "suspended_by_scope": suspended_by_scope(account),
        "funding": account.funding.name.lower(),
        "delinquent": account.delinquent,
        "metadata": dict(account.metadata),
    }


def _standing(outcome: Reviewed) -> tuple[str, State] | None:
    """A review that changed nothing is no act."""
    if not outcome.changed:
        return None
    account = outcome.account
    judged = Standing(outcome.overdue, outcome.since)
    return account.path, {"delinquent": account.delinquent, "why": judged.sentence}


def _json(state: State | None) -> str | None:
    return None if state is None else msgspec.json.encode(state).decode()
