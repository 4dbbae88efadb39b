"""What the audit log says of quotas, rate limits, boosts and budgets: before, and after.

Owns: the state of each as it is written down, in the words of the wire.
Must not: know which commands are acts (auditing does), or write anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from gpucredits.core.book import Book
from gpucredits.core.budget import Budget
from gpucredits.core.command import (
    Command,
    EndBoost,
    EndBudget,
    EndQuota,
    EndRateLimit,
    ReplaceBudgets,
    ReplaceQuotas,
    SetBudget,
    SetQuota,
    SetRateLimit,
)
from gpucredits.core.outcome import (
    Boosted,
    BudgetSaved,
    BudgetsReplaced,
    Outcome,
    QuotaSaved,
    QuotasReplaced,
    RateLimitSaved,
)
from gpucredits.core.quota import Quota
from gpucredits.core.rules.limits.boosts import find_target, told
from gpucredits.core.rules.limits.quotas import find_quota, open_quotas, same_quota
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.wire.boost import boosted_to_wire
from gpucredits.wire.budget import budget_to_wire
from gpucredits.wire.quota import quota_to_wire
from gpucredits.wire.rate_limit import rate_limit_to_wire

State = dict[str, Any]


def limit_before(book: Book, command: Command) -> State | None:
    """The limit that a command is about to change, where there is one."""
    match command:
        case SetQuota() | EndQuota() | ReplaceQuotas():
            return _quotas_before(book, command)
        case EndBoost():
            return _boost_before(book, command)
        case SetRateLimit(account=path) | EndRateLimit(account=path):
            account = book.paths.get(path)
            bucket = None if account is None else book.limits.buckets.get(account.account_id)
            return None if bucket is None else _rate_limit(book.org.org_id, path, bucket)
        case SetBudget() | EndBudget() | ReplaceBudgets():
            return _budgets_before(book, command)
        case _:
            return None


def limit_after(org_id: int, outcome: Outcome) -> tuple[str, State] | None:
    """(account, state) that a change of limits left behind; None for everything else."""
    state: State
    match outcome:
        case QuotaSaved(quota=quota, path=path):
            state = _quota(org_id, path, quota)
        case QuotasReplaced(path=path, quotas=quotas, ended=over):
            ended = [_quota(org_id, path, quota) for quota in over]
            state = _quotas(org_id, path, quotas) | {"ended": ended}
        case RateLimitSaved(bucket=bucket, path=path):
            state = _rate_limit(org_id, path, bucket)
        case Boosted(path=path):
            state = _state(boosted_to_wire(org_id, outcome))
        case BudgetSaved(budget=budget, path=path):
            state = _budget(org_id, path, budget)
        case BudgetsReplaced(path=path, budgets=budgets, ended=finished):
            ended = [_budget(org_id, path, budget) for budget in finished]
            state = _budgets(org_id, path, budgets) | {"ended": ended}
        case _:
            return None
    return path, state


def _quotas_before(book: Book, command: SetQuota | EndQuota | ReplaceQuotas) -> State | None:
    org_id = book.org.org_id
    if isinstance(command, EndQuota):
        quota = find_quota(book, command.quota_id)
        account = None if quota is None else book.accounts[quota.account_id]
    else:
        account = book.paths.get(command.account)
        if isinstance(command, ReplaceQuotas) and account is not None:
            return _quotas(org_id, account.path, open_quotas(book, account))
        quota = (
            same_quota(book, account, command)
            if account and isinstance(command, SetQuota)
            else None
        )
    return None if quota is None or account is None else _quota(org_id, account.path, quota)


def _boost_before(book: Book, command: EndBoost) -> State | None:
    target = find_target(book, command.target_id)
    boosts = book.limits.boosts.get(command.target_id, ())
    boost = next((each for each in boosts if each.boost_id == command.boost_id), None)
    if boost is None or target is None:
        return None
    return _state(boosted_to_wire(book.org.org_id, told(book, boost, target)))


def _budgets_before(book: Book, command: SetBudget | EndBudget | ReplaceBudgets) -> State | None:
    org_id, path = book.org.org_id, command.account
    account = book.paths.get(path)
    budgets = [] if account is None else book.budgets.get(account.account_id, [])
    if isinstance(command, ReplaceBudgets):
        return _budgets(org_id, path, [budget for budget in budgets if budget.is_open])
    known = next((budget for budget in budgets if budget.name == command.name), None)
    return None if known is None else _budget(org_id, path, known)


def _quotas(org_id: int, path: str, quotas: Iterable[Quota]) -> State:
    return {"quotas": [_quota(org_id, path, quota) for quota in quotas]}


def _budgets(org_id: int, path: str, budgets: Iterable[Budget]) -> State:
    return {"budgets": [_budget(org_id, path, budget) for budget in budgets]}


def _quota(org_id: int, path: str, quota: Quota) -> State:
    return _state(quota_to_wire(org_id, path, quota))


def _rate_limit(org_id: int, path: str, bucket: TokenBucket) -> State:
    return _state(rate_limit_to_wire(org_id, path, bucket))


def _budget(org_id: int, path: str, budget: Budget) -> State:
    return _state(budget_to_wire(org_id, path, budget))


def _state(shown: msgspec.Struct) -> State:
    state: State = msgspec.to_builtins(shown)
    return {name: value for name, value in state.items() if value is not None}
