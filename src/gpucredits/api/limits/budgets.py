"""Handlers of budgets: an allowance for each period.

A budget makes credits, as a grant does: whoever may issue may set one.
"""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError, invalid
from gpucredits.api.http.paging import PageQuery, number_cursor, page
from gpucredits.api.http.reasons import BAD_LIMIT, NO_ACCOUNT, NO_LIMIT
from gpucredits.api.http.scope import AnyCall, account_exists, account_param, org_number, saved
from gpucredits.api.limits.limit_standing import standing_of
from gpucredits.core import bounds
from gpucredits.core.command import EndBudget, SetBudget
from gpucredits.core.limit_standing import budget_standings
from gpucredits.core.outcome import BudgetSaved, BudgetsReplaced
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.service.billing.budgets import PeriodStanding, read_periods
from gpucredits.wire.limits.budget import (
    BudgetBody,
    BudgetChange,
    BudgetsAnswer,
    BudgetSetting,
    BudgetsRequest,
    BudgetsTerms,
    BudgetTerms,
    PeriodAnswer,
    PeriodsAnswer,
    budget_change_from_wire,
    budget_from_wire,
    budget_saved_to_wire,
    budget_standing_to_wire,
    budgets_from_wire,
    budgets_replaced_to_wire,
    period_to_wire,
)
from gpucredits.wire.scalars import Slug, format_instant, from_wire

route = Routes("limits")


@route(
    "GET /v1/accounts/{account}/budgets",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="budgets(account)",
)
async def get_budgets(call: ApiRequest[None, NoQuery]) -> BudgetsAnswer:
    """List the budgets of an account and their open periods."""
    account = account_param(call)
    found = await standing_of(call, account)
    org_id = found.book.org.org_id
    budgets = []
    for standing in budget_standings(found.book, found.account, found.now):
        period = None
        if standing.period is not None:
            name = standing.budget.name
            periods = await call.services.run(read_periods, account, name, limit=1) or []
            period = shown(org_id, periods[0]) if periods else None
        budgets.append(budget_standing_to_wire(org_id, account, standing.budget, period))
    return BudgetsAnswer(account=account, budgets=budgets, as_of=format_instant(found.now))


@route(
    "GET /v1/accounts/{account}/budgets/{budget}/periods",
    Permission.READ,
    reasons=(*NO_ACCOUNT, *NO_LIMIT),
    client="period_page(account, name)",
)
async def get_budget_periods(call: ApiRequest[None, PageQuery]) -> PeriodsAnswer:
    """List the periods of a budget, the latest first."""
    account = account_param(call)
    name = budget_param(call)
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    before = number_cursor(call.query, bounds.NEVER_US)
    limit = call.query.limit
    periods = await call.services.run(read_periods, account, name, before=before, limit=limit + 1)
    if periods is None:
        text = f"{account} has no budget {name}."
        raise RefusedError(Refused(Reason.LIMIT_UNKNOWN, text, {"account": account}))
    periods, following = page(periods, call.query, lambda row: row.period.starts_at)
    return PeriodsAnswer(
        account=account,
        name=name,
        periods=[shown(org_id, period) for period in periods],
        next_cursor=following,
    )


@route(
    "POST /v1/accounts/{account}/budgets",
    Permission.ISSUE,
    reasons=(*NO_ACCOUNT, *BAD_LIMIT, "window_ended"),
)
async def post_budget(call: ApiRequest[BudgetSetting, NoQuery]) -> BudgetTerms:
    """Make a budget, or change some terms of the open budget of that name."""
    account = account_param(call)
    return await _set(call, budget_change_from_wire(account, str(call.body.name), call.body))


@route(
    "PATCH /v1/accounts/{account}/budgets/{budget}",
    Permission.ISSUE,
    reasons=(*NO_ACCOUNT, *BAD_LIMIT, "window_ended"),
    client="set_budget(account, allowance)",
)
async def patch_budget(call: ApiRequest[BudgetChange, NoQuery]) -> BudgetTerms:
    """Make a budget, or change some terms of it from the next period on."""
    account = account_param(call)
    return await _set(call, budget_change_from_wire(account, budget_param(call), call.body))


@route(
    "PUT /v1/accounts/{account}/budgets/{budget}",
    Permission.ISSUE,
    reasons=(*NO_ACCOUNT, *BAD_LIMIT, "window_ended"),
    client="set_budget(account, allowance)",
)
async def put_budget(call: ApiRequest[BudgetBody, NoQuery]) -> BudgetTerms:
    """Make a budget, or replace all terms of it from the next period on."""
    account = account_param(call)
    return await _set(call, budget_from_wire(account, budget_param(call), call.body))


async def _set(call: AnyCall, command: SetBudget) -> BudgetTerms:
    return await saved(call, command.account, command, BudgetSaved, budget_saved_to_wire)


@route(
    "PUT /v1/accounts/{account}/budgets",
    Permission.ISSUE,
    reasons=(*NO_ACCOUNT, *BAD_LIMIT, "window_ended"),
    client="replace_budgets(account, budgets)",
)
async def put_budgets(call: ApiRequest[BudgetsRequest, NoQuery]) -> BudgetsTerms:
    """Replace all budgets of an account at once.

    Each item has the fields of a single budget.
    """
    account = account_param(call)
    command = budgets_from_wire(account, call.body)
    return await saved(call, account, command, BudgetsReplaced, budgets_replaced_to_wire)


@route(
    "DELETE /v1/accounts/{account}/budgets/{budget}",
    Permission.ISSUE,
    reasons=(*NO_ACCOUNT, *NO_LIMIT),
    client="end_budget(account, name)",
)
async def delete_budget(call: ApiRequest[None, NoQuery]) -> BudgetTerms:
    """End a budget: the open period runs to its end, and no other begins."""
    account = account_param(call)
    command = EndBudget(account=account, name=budget_param(call))
    return await saved(call, account, command, BudgetSaved, budget_saved_to_wire)


def shown(org_id: int, standing: PeriodStanding) -> PeriodAnswer:
    """A period with its numbers."""
    return period_to_wire(
        org_id,
        standing.period,
        used=standing.used,
        left=standing.left,
        rolled_in=standing.rolled_in,
    )


def budget_param(call: AnyCall) -> str:
    """The name of a budget in the request's path."""
    try:
        return str(from_wire(Slug, call.params["budget"]))
    except ValueError as error:
        raise invalid("budget", str(error)) from error
