"""Rules for replacing all quotas or all budgets of an account at once.

Owns: which of those there are stay, change, begin or end. Everything is checked before anything is
changed, so that a refusal leaves all of them as they were.
Must not: set or end any in a way of its own; the rules of each do.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from gpucredits.core import bounds
from gpucredits.core.book import Book, invariant
from gpucredits.core.budget import Budget
from gpucredits.core.command import EndBudget, EndQuota, ReplaceBudgets, ReplaceQuotas
from gpucredits.core.limit_states import budget_state, quota_state
from gpucredits.core.outcome import BudgetSaved, BudgetsReplaced, QuotaSaved, QuotasReplaced
from gpucredits.core.quota import Quota
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, touches_account, without_nulls
from gpucredits.core.rules.credit.funding import find
from gpucredits.core.rules.limits.budgets import check_budget, end_budget, set_budget
from gpucredits.core.rules.limits.quotas import (
    check_quota,
    end_quota,
    higher_than_above,
    open_quotas,
    same_quota,
    set_quota,
    touches_quotas,
)


def replace_quotas(book: Book, command: ReplaceQuotas, now: int) -> QuotasReplaced | Refused:
    """Set every quota of the list, and end those that are not in it; those from above stay."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    kinds = {(q.dimension, q.gpu_type, q.calendar, q.zone, q.rolling_hours) for q in command.quotas}
    if len(kinds) < len(command.quotas):
        return Refused(Reason.LIMIT_INVALID, "Two quotas of the list are the same but for limits.")
    above = [quota for quota in open_quotas(book, account) if quota.set_by < command.by]
    if len(kinds) + len(above) > bounds.QUOTAS_MAX:
        return Refused(Reason.LIMIT_INVALID, f"An account has at most {bounds.QUOTAS_MAX} quotas.")
    for each in command.quotas:
        if wrong := check_quota(each) or higher_than_above(book, account, each, now):
            return wrong
    kept = {known.quota_id for each in command.quotas if (known := same_quota(book, account, each))}
    ended: list[Quota] = []
    for quota in open_quotas(book, account):
        if quota.quota_id not in kept and quota.set_by >= command.by:
            outcome = end_quota(book, EndQuota(quota_id=quota.quota_id, by=command.by), now)
            ended.append(saved_quota(outcome))
    quotas = tuple(saved_quota(set_quota(book, each, now)) for each in command.quotas)
    return QuotasReplaced(account.path, (*map(copy, above), *quotas), tuple(ended))


def saved_quota(outcome: QuotaSaved | Refused) -> Quota:
    """The quota that was saved, as it is now: it was checked before that it would be."""
    invariant(isinstance(outcome, QuotaSaved), "a quota that was checked is saved")
    assert isinstance(outcome, QuotaSaved)  # for the type checker
    return copy(outcome.quota)


def replace_budgets(book: Book, command: ReplaceBudgets, now: int) -> BudgetsReplaced | Refused:
    """Set every budget of the list, and end the open ones that are not in it."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    names = {each.name for each in command.budgets}
    if len(names) < len(command.budgets):
        return Refused(Reason.LIMIT_INVALID, "Two budgets of the list have the same name.")
    if len(names) > bounds.BUDGETS_MAX:
        text = f"An account has at most {bounds.BUDGETS_MAX} budgets."
        return Refused(Reason.LIMIT_INVALID, text)
    for each in command.budgets:
        if wrong := check_budget(each, max(now, each.starts_at or now)):
            return wrong
    ended: list[Budget] = []
    for budget in list(book.budgets.get(account.account_id, ())):
        if budget.is_open and budget.name not in names:
            outcome = end_budget(book, EndBudget(account=account.path, name=budget.name), now)
            if isinstance(outcome, BudgetSaved):  # else its last period has begun by now
                ended.append(copy(outcome.budget))
    budgets = tuple(saved_budget(set_budget(book, each, now)) for each in command.budgets)
    return BudgetsReplaced(account.path, budgets, tuple(ended))


def saved_budget(outcome: BudgetSaved | Refused) -> Budget:
    """The budget that was saved, as it is now: it was checked before that it would be."""
    invariant(isinstance(outcome, BudgetSaved), "a budget that was checked is saved")
    assert isinstance(outcome, BudgetSaved)  # for the type checker
    return copy(outcome.budget)


def quotas_before(book: Book, command: ReplaceQuotas) -> State | None:
    """The quotas that are about to be replaced."""
    account = book.paths.get(command.account)
    if account is None:
        return None
    quotas = open_quotas(book, account)
    return {"quotas": quota_states(book.org.org_id, account.path, quotas)}


def quotas_after(org_id: int, outcome: QuotasReplaced) -> tuple[str, State]:
    """The account, its quotas, and those that ended."""
    return outcome.path, {
        "quotas": quota_states(org_id, outcome.path, outcome.quotas),
        "ended": quota_states(org_id, outcome.path, outcome.ended),
    }


def quota_states(org_id: int, path: str, quotas: Iterable[Quota]) -> list[State]:
    """Quotas as the audit log keeps them."""
    return [without_nulls(quota_state(org_id, path, quota)) for quota in quotas]


def budgets_before(book: Book, command: ReplaceBudgets) -> State:
    """The open budgets that are about to be replaced."""
    account = book.paths.get(command.account)
    budgets = () if account is None else book.budgets.get(account.account_id, ())
    there = [budget for budget in budgets if budget.is_open]
    return {"budgets": budget_states(book.org.org_id, command.account, there)}


def budgets_after(org_id: int, outcome: BudgetsReplaced) -> tuple[str, State]:
    """The account, its budgets, and those that ended."""
    return outcome.path, {
        "budgets": budget_states(org_id, outcome.path, outcome.budgets),
        "ended": budget_states(org_id, outcome.path, outcome.ended),
    }


def budget_states(org_id: int, path: str, budgets: Iterable[Budget]) -> list[State]:
    """Budgets as the audit log keeps them."""
    return [without_nulls(budget_state(org_id, path, budget)) for budget in budgets]


RULES: tuple[Rule, ...] = (
    Rule(
        ReplaceQuotas,
        decide=replace_quotas,
        touches=touches_quotas,
        audit="quota.replace",
        before=quotas_before,
        after=quotas_after,
    ),
    Rule(
        ReplaceBudgets,
        decide=replace_budgets,
        touches=touches_account,
        audit="budget.replace",
        before=budgets_before,
        after=budgets_after,
    ),
)
