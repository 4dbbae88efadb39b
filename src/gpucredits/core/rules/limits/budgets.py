"""Rules for budgets: making, changing and ending them.

Must not: take back what the period that is open has; a change begins with the next one.
"""

from __future__ import annotations

from dataclasses import replace

from gpucredits.core import bounds
from gpucredits.core.book import Book
from gpucredits.core.budget import Budget, Rollover
from gpucredits.core.change import is_named, merged
from gpucredits.core.command import EndBudget, SetBudget
from gpucredits.core.limit_states import budget_state
from gpucredits.core.outcome import BudgetSaved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, touches_account, without_nulls
from gpucredits.core.rules.credit.funding import allot, find
from gpucredits.core.rules.limits.setting import too_many, zone_unknown
from gpucredits.core.rules.upkeep.budget_periods import issue_period
from gpucredits.core.rules.upkeep.roll import roll


def set_budget(book: Book, command: SetBudget, now: int) -> BudgetSaved | Refused:
    """Make a budget, whose first period is issued at its start, or change its later periods."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    begins = max(now, command.starts_at or now)
    roll(book, account, now)
    budgets = book.budgets.get(account.account_id, ())
    budget = next((known for known in budgets if known.name == command.name), None)
    is_open = budget is not None and budget.is_open
    if not is_open and not is_named("allowance", command.named):
        return Refused(
            Reason.LIMIT_INVALID,
            f"{account.path} has no open budget {command.name}: name its allowance to make one.",
            {"account": account.path},
        )
    command = whole_budget(command, budget if is_open else None)
    if wrong := check_budget(command, begins):
        return wrong
    if budget is None:
        there = sum(1 for known in budgets if known.is_open)
        if full := too_many("budgets", there, bounds.BUDGETS_MAX, account):
            return full
        budget = Budget(book.next_id(), account.account_id, command.name, 0, begins, created_at=now)
        book.add(budget)
    book.touch(budget)
    book.touch(account)
    allot(book, account)
    has_begun = bool(book.periods.get(budget.budget_id))
    if not budget.is_open or (command.starts_at and not has_begun):
        budget.next_at = max(budget.next_at, begins) if has_begun else begins
    budget.allowance = command.allowance
    budget.calendar, budget.zone = command.calendar, command.zone
    budget.ends_at = command.ends_at
    budget.rollover, budget.rollover_cap = command.rollover, command.rollover_cap
    budget.rollover_us = command.rollover_us
    budget.priority = command.priority
    budget.warn_percent = command.warn_percent
    if budget.is_open and budget.next_at <= now:
        grant = issue_period(book, account, budget)
        account.due_at = min(account.due_at, grant.expires_at)
    if budget.is_open:
        account.due_at = min(account.due_at, budget.next_at)
    account.version += 1
    return BudgetSaved(budget, account.path)


def whole_budget(command: SetBudget, budget: Budget | None) -> SetBudget:
    """All terms that a budget is to have: those named, and the others as they are.

    A term that only made sense with another one goes with it, unless it is named too.
    """
    named = command.named
    if named is None or budget is None:
        return command
    whole = merged(command, budget, named)
    if whole.rollover is not Rollover.CAPPED and "rollover_cap" not in named:
        whole = replace(whole, rollover_cap=0)
    if whole.rollover is Rollover.NONE and "rollover_us" not in named:
        whole = replace(whole, rollover_us=0)
    if whole.calendar is None and "zone" not in named:
        whole = replace(whole, zone="UTC")
    return whole


def check_budget(command: SetBudget, begins: int) -> Refused | None:
    """Refuse a budget that makes no sense."""
    explicit = command.calendar is None
    if wrong := contradiction(command):
        return Refused(Reason.LIMIT_INVALID, wrong)
    if explicit and command.ends_at >= bounds.NEVER_US:
        return Refused(Reason.LIMIT_INVALID, "A budget needs a calendar or an ends_at.")
    if explicit and command.rollover is not Rollover.NONE and not command.rollover_us:
        return Refused(
            Reason.LIMIT_INVALID,
            "What rolls over from a budget without a calendar needs rollover_seconds to live.",
        )
    if command.ends_at <= begins:
        return Refused(
            Reason.WINDOW_ENDED,
            "The budget would end before it begins: ends_at must be later than now and starts_at.",
        )
    return zone_unknown(command.zone)


def contradiction(command: SetBudget) -> str:
    """Which terms of a changed budget do not go together; an empty string where all do.

    Those of a replacement are all named, and were checked as they came in.
    """
    if command.named is None:
        return ""
    if (command.rollover is Rollover.CAPPED) is not (command.rollover_cap > 0):
        return "rollover_cap goes with rollover capped: name both, or another rollover."
    if command.rollover is Rollover.NONE and command.rollover_us:
        return "rollover_seconds is for what rolls over: name rollover all or capped too."
    if command.calendar is None and command.zone != "UTC":
        return "zone is for a calendar: name calendar too, or leave zone out."
    return ""


def end_budget(book: Book, command: EndBudget, now: int) -> BudgetSaved | Refused:
    """Let no further period begin; the one that is open runs to its end."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    roll(book, account, now)
    budgets = book.budgets.get(account.account_id, ())
    budget = next((known for known in budgets if known.name == command.name), None)
    if budget is None or not budget.is_open:
        return Refused(
            Reason.LIMIT_UNKNOWN,
            f"{account.path} has no open budget {command.name}.",
            {"account": account.path},
        )
    book.touch(budget)
    book.touch(account)
    budget.ends_at = budget.next_at
    account.version += 1
    return BudgetSaved(budget, account.path)


def budget_before(book: Book, command: SetBudget | EndBudget) -> State | None:
    """The budget that is about to change."""
    account = book.paths.get(command.account)
    budgets = () if account is None else book.budgets.get(account.account_id, ())
    budget = next((each for each in budgets if each.name == command.name), None)
    if budget is None:
        return None
    return without_nulls(budget_state(book.org.org_id, command.account, budget))


def budget_after(org_id: int, outcome: BudgetSaved) -> tuple[str, State]:
    """The account and its budget."""
    return outcome.path, without_nulls(budget_state(org_id, outcome.path, outcome.budget))


RULES: tuple[Rule, ...] = (
    Rule(SetBudget, set_budget, touches_account, "budget.set", budget_before, budget_after),
    Rule(EndBudget, end_budget, touches_account, "budget.end", budget_before, budget_after),
)
