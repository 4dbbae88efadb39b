"""Rules for the periods of budgets: issuing each one's allowance, rolling over what is left.

Owns: what happens at the two ends of a period. Issuing is part of rolling an account forward, so it
is true by the clock whoever writes it down, once for each period, and catches up by itself.
Must not: read calendars other than through the budget's own functions.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.budget import (
    Budget,
    BudgetPeriod,
    next_period,
    reached,
    rolled_amount,
    rolled_until,
)
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.rules.upkeep.lots import start


def issue_period(book: Book, account: Account, budget: Budget) -> Grant:
    """Open the budget's next period: its row, and the grant that is its allowance."""
    starts_at, ends_at = next_period(budget)
    book.touch(budget)
    book.touch(account)
    grant = Grant(
        grant_id=book.next_id(),
        account_id=account.account_id,
        amount=budget.allowance,
        remaining=budget.allowance,
        starts_at=starts_at,
        expires_at=ends_at,
        priority=budget.priority,
        state=GrantState.PENDING,
        created_at=starts_at,
        budget_id=budget.budget_id,
    )
    book.add(grant)
    book.add(
        BudgetPeriod(
            budget_id=budget.budget_id,
            starts_at=starts_at,
            ends_at=ends_at,
            allowance=budget.allowance,
            grant_id=grant.grant_id,
            rollover=budget.rollover,
            rollover_cap=budget.rollover_cap,
            rollover_us=budget.rollover_us,
            calendar=budget.calendar,
            zone=budget.zone,
        )
    )
    budget.next_at = ends_at
    start(book, account, grant, starts_at)
    return grant


def roll_over(book: Book, account: Account, grant: Grant, used: int, at: int) -> Grant | None:
    """Take what goes on out of an allowance that ends now, into a grant with its own end.

    ``used`` stays behind: live leases may have used it and not reported.
    """
    periods = book.periods.get(grant.budget_id, ())
    period = next((each for each in periods if each.grant_id == grant.grant_id), None)
    amount = rolled_amount(period, grant.remaining - used) if period else 0
    if period is None or not amount:
        return None
    rolled = Grant(
        grant_id=book.next_id(),
        account_id=account.account_id,
        amount=amount,
        remaining=amount,
        starts_at=at,
        expires_at=rolled_until(period, at),
        priority=grant.priority,
        source=grant.source,
        origin_id=grant.grant_id,
        created_at=at,
    )
    book.touch(grant)
    grant.remaining -= amount
    if not grant.remaining:
        grant.state = GrantState.ENDED
        book.place(grant)
    book.add(rolled)
    book.post(
        EntryType.TRANSFER,
        account,
        amount,
        at=at,
        grant_id=grant.grant_id,
        other_id=account.account_id,
        other_grant_id=rolled.grant_id,
    )
    book.touch(period)
    period.rolled = amount
    period.rolled_grant_id = rolled.grant_id
    return rolled


def next_issue(book: Book, account: Account) -> int:
    """When the next period of any of the account's budgets begins."""
    return min(
        (budget.next_at for budget in book.budgets.get(account.account_id, ()) if budget.is_open),
        default=bounds.NEVER_US,
    )


def note_warnings(book: Book, account: Account, now: int) -> None:
    """Write down the highest warning that each open period has reached."""
    for budget in book.budgets.get(account.account_id, ()):
        for period in book.periods.get(budget.budget_id, ()):
            if not period.starts_at <= now < period.ends_at:
                continue
            grant = book.lots.get(period.grant_id)
            used = period.allowance - (grant.remaining if grant else 0)
            percent = reached(budget.warn_percent, period.allowance, used)
            if percent > period.warned_percent:
                book.touch(period)
                period.warned_percent = percent
