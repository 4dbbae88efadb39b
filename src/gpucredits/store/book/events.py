"""Domain events: what is announced when rows have changed.

Owns: which changes are news. Heartbeats are not: the entries are that stream.
Must not: deliver anything; exports read the table (docs/operating.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gpucredits.core.account import Account
from gpucredits.core.book import PayerMove, Row
from gpucredits.core.budget import BudgetPeriod
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.money import format_credits
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book.cached_book import CachedBook

Event = tuple[str, int, str]  # type, the number of the row it is about, payload as JSON
Payload = Mapping[str, str | int]
RUNNING = (ReservationState.ACTIVE, Decision.CONTINUE)
ENDINGS = {
    ReservationState.SETTLED: "reservation.settled",
    ReservationState.CANCELED: "reservation.canceled",
    ReservationState.EXPIRED: "reservation.lapsed",
}


def events_of(cached: CachedBook, row: Row, events: list[Event]) -> None:
    """Add what is news about a changed row."""
    match row:
        case Reservation():
            number = row.reservation_id
            if number >= cached.first_new_id or number in cached.lease_states or is_news(row):
                lease_events(cached, row, events)
        case Grant():
            grant_events(cached, row, events)
        case TopUpRow():
            if cached.topup_statuses.get(row.topup_id) is not row.status:
                payload: Payload = {"amount": format_credits(row.amount), "grant": row.grant_id}
                events.append(event(f"topup.{row.status.name.lower()}", row.topup_id, payload))
        case Account():
            account_events(cached, row, events)
        case BudgetPeriod():
            known = (row.budget_id, row.starts_at, row.warned_percent)
            if row.warned_percent and known not in cached.warned:
                warning: Payload = {
                    "percent": row.warned_percent,
                    "allowance": format_credits(row.allowance),
                    "grant": row.grant_id,
                }
                events.append(event("budget.warned", row.budget_id, warning))
        case _:
            pass  # what an operator set is in the audit log


def is_news(row: Reservation) -> bool:
    """Whether a lease that simply ran until now no longer does."""
    return bool(row.state) or row.decision is not Decision.CONTINUE


def lease_events(cached: CachedBook, row: Reservation, events: list[Event]) -> None:
    """A lease was given, began to drain, goes on after all, ended, or was charged late."""
    number = row.reservation_id
    payload: Payload = {"account": row.account, "settled": format_credits(row.settled)}
    if number >= cached.first_new_id:
        opened = {**payload, "job_id": row.job_id, "held": format_credits(row.held)}
        events.append(event("reservation.opened", number, opened))
    state, decision = cached.lease_states.get(number, RUNNING)
    if row.state is not state and row.state in ENDINGS:
        events.append(event(ENDINGS[row.state], number, payload))
    elif any(late.reservation_id == number for late in cached.book.late_use):
        events.append(event("reservation.charged_late", number, payload))
    elif row.decision is Decision.DRAIN and decision is not Decision.DRAIN:
        events.append(event("reservation.draining", number, payload))
    elif row.decision is Decision.CONTINUE and decision is Decision.DRAIN:
        events.append(event("reservation.resumed", number, payload))


def account_events(cached: CachedBook, row: Account, events: list[Event]) -> None:
    """An account was opened, spends other credits, was paused for what it owes, or has paid."""
    told: Payload = {"path": row.path}
    if row.account_id >= cached.first_new_id:
        events.append(event("account.opened", row.account_id, told))
    elif cached.had_other_funding(row):
        funding = {**told, "funding": row.funding.name.lower()}
        events.append(event("account.funding_changed", row.account_id, funding))
    if row.delinquent is not cached.was_delinquent(row.account_id):
        kind = "account.delinquent" if row.delinquent else "account.resumed"
        events.append(event(kind, row.account_id, told))


def moved_event(move: PayerMove) -> Event:
    """Another account pays for a lease from here on."""
    return event("reservation.payer_changed", move.reservation_id, moved_payload(move))


def moved_decision(
    org_id: int, now: int, move: PayerMove
) -> tuple[int, int, str, str, str, int, str, str]:
    """The record of the decision that another account pays, as its columns are stored."""
    detail = msgspec.json.encode(moved_payload(move)).decode()
    short = Reason.INSUFFICIENT_CREDITS.value
    return (org_id, now, "Beat", "change_payer", short, move.reservation_id, "", detail)


def moved_payload(move: PayerMove) -> Payload:
    """Who paid for a lease, who does now, and what that account holds for it."""
    return {"from": move.source, "to": move.target, "held": format_credits(move.held)}


def grant_events(cached: CachedBook, row: Grant, events: list[Event]) -> None:
    """A grant was issued or has expired."""
    before = cached.grant_states.get(row.grant_id)
    if row.state is before:
        return
    payload: Payload = {"account_id": row.account_id, "amount": format_credits(row.amount)}
    if before is None:
        events.append(event("grant.issued", row.grant_id, payload))
    if row.state in (GrantState.ENDED, GrantState.HELD_OVER):
        remaining = {**payload, "held_over": format_credits(row.remaining)}
        events.append(event("grant.expired", row.grant_id, remaining))


def event(kind: str, number: int, payload: Payload) -> Event:
    """An event with its payload as JSON."""
    return kind, number, msgspec.json.encode(payload).decode()
