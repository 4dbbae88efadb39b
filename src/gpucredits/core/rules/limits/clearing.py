"""When a closed gate would open by itself: the ``clears_at`` of a refusal.

Each answer supposes that holds stay and that nothing more is spent, added or changed by people. The
clock alone goes on: grants, the periods of budgets and boosts start, and they end as well. So an
instant is named only if the request would pass at that instant.

Owns: these forecasts. None means that no instant is known.
Must not: change rows, or say how a gate stands now (gates does).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Final

from gpucredits.core.account import Account, Model
from gpucredits.core.book import Book
from gpucredits.core.budget import (
    Budget,
    BudgetPeriod,
    next_period,
    rolled_amount,
    rolled_until,
)
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.limits import Boost, TokenBucket, advance, boosted, bucket_terms, clears_at
from gpucredits.core.quota import Counter, Quota, reach, window_at

PERIODS_AHEAD: Final = 3  # of a budget: what rolls over joins the allowances of later ones
END, START = 0, 1  # at one instant grants end before others start


@dataclass(slots=True)
class Lot:
    """Credits that come or go: the part of a grant that would be left, and when it ends."""

    amount: int
    ends_at: int
    period: BudgetPeriod | None = None


Event = tuple[int, int, int, Lot]  # instant, END or START, a number that tells events apart, lot


def funded_at(book: Book, payer: Account, needed: int, now: int) -> int | None:
    """When credits that are on their way would let an account hold ``needed``.

    What starts by then counts, less what has ended by then. A grant that ends leaves what holds
    need of it, as at a real end (claims). Arriving credits pay what the account owes first.
    """
    events = events_of(book, payer, now)
    heapify(events)
    free, debt, overrun = payer.available, payer.debt, payer.overrun
    limit = payer.credit_limit if payer.model is Model.POSTPAID else 0
    number = len(events)
    while events:
        at, kind, _, lot = heappop(events)
        if kind == END:
            rolled = 0 if lot.period is None else rolled_amount(lot.period, lot.amount)
            free = max(free - lot.amount + rolled, min(free, 0))
            if lot.period is not None and rolled:
                number += 1
                heappush(events, (at, START, number, Lot(rolled, rolled_until(lot.period, at))))
                free -= rolled  # it comes back as a grant of its own
            continue
        free += lot.amount
        repaid = min(debt, lot.amount)
        collected = min(overrun, lot.amount - repaid, max(free, 0))
        free, debt, overrun = free - collected, debt - repaid, overrun - collected
        number += 1
        heappush(
            events, (lot.ends_at, END, number, replace(lot, amount=lot.amount - repaid - collected))
        )
        if free + limit >= needed and not (events and events[0][:2] == (at, START)):
            return at
    return None


def events_of(book: Book, payer: Account, now: int) -> list[Event]:
    """What the clock has in store for an account: ends of its grants, and credits that start."""
    found: list[tuple[int, int, Lot]] = []
    for grant in book.grants[payer.account_id]:
        if grant.state is GrantState.ACTIVE:
            lot = Lot(grant.remaining, grant.expires_at, period_of(book, grant))
            found.append((grant.expires_at, END, lot))
        elif grant.state is GrantState.PENDING:
            found.append((grant.starts_at, START, Lot(grant.remaining, grant.expires_at)))
    for budget in book.budgets.get(payer.account_id, ()):
        for period in periods_ahead(budget, now):
            lot = Lot(period.allowance, period.ends_at, period)
            found.append((period.starts_at, START, lot))
    return [(at, kind, number, lot) for number, (at, kind, lot) in enumerate(found)]


def period_of(book: Book, grant: Grant) -> BudgetPeriod | None:
    """The period whose allowance a grant is, if it is one."""
    periods = book.periods.get(grant.budget_id, ()) if grant.budget_id else ()
    return next((each for each in periods if each.grant_id == grant.grant_id), None)


def periods_ahead(budget: Budget, now: int) -> list[BudgetPeriod]:
    """The next few periods of a budget that have not begun."""
    coming = replace(budget)
    found: list[BudgetPeriod] = []
    while coming.is_open and coming.next_at > now and len(found) < PERIODS_AHEAD:
        starts_at, coming.next_at = next_period(coming)
        found.append(
            BudgetPeriod(
                budget_id=budget.budget_id,
                starts_at=starts_at,
                ends_at=coming.next_at,
                allowance=budget.allowance,
                grant_id=0,
                rollover=budget.rollover,
                rollover_cap=budget.rollover_cap,
                rollover_us=budget.rollover_us,
                calendar=budget.calendar,
                zone=budget.zone,
            )
        )
    return found


def window_clears_at(
    book: Book, quota: Quota, counter: Counter, requested: int, now: int
) -> int | None:
    """The first instant at which the window of a quota has room."""
    boosts = book.limits.boosts_of(quota)
    last = max(counter.ends_at, now) + reach(quota)
    instants = {boost.starts_at for boost in boosts if boost.starts_at > now}
    at = window_at(quota, now)[1]
    instants.add(at)
    while quota.calendar is None and at <= last:
        at = window_at(quota, at)[1]
        instants.add(at)
    for at in sorted(instants):
        used = book.limits.used_at(quota, counter, at)
        if used + counter.held + requested <= boosted(quota.limit, boosts, at):
            return at
    return None


def raised_at(limit: int, boosts: Iterable[Boost], wanted: int, now: int) -> int | None:
    """The first instant at which a boost begins that brings a limit to ``wanted``."""
    known = tuple(boosts)
    instants = (boost.starts_at for boost in known if boost.starts_at > now)
    return min((at for at in instants if boosted(limit, known, at) >= wanted), default=None)


def drawn_at(
    bucket: TokenBucket, boosts: Iterable[Boost], amount: int | None, now: int
) -> int | None:
    """The first instant at which ``amount`` could be drawn from a bucket, through all its boosts.

    Without an amount: the first instant at which it is full.
    """
    changes = bucket_terms(bucket, boosts)
    seen = copy(bucket)
    for until in (now, *(change.since for change in changes if change.since > now)):
        terms = advance(seen, changes, until)
        seen.capacity, seen.refill_per_hour = terms.capacity, terms.refill_per_hour
        at = clears_at(seen, terms.capacity if amount is None else amount, until)
        following = next((each.since for each in changes if each.since > until), None)
        if at is not None and (following is None or at < following):
            return at
    return None
