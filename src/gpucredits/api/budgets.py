"""Handlers of budgets: an allowance for each period.

A budget makes credits, as a grant does: whoever may issue may set one.
"""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import ProblemError
from gpucredits.api.reasons import BAD_LIMIT, NO_ACCOUNT, NO_LIMIT
from gpucredits.api.scope import AnyCall, account_param, org_number
from gpucredits.api.submit import submit
from gpucredits.core.command import EndBudget
from gpucredits.core.outcome import BudgetSaved, BudgetsReplaced
from gpucredits.service.access import Permission
from gpucredits.wire.budget import (
    BudgetRequest,
    BudgetsRequest,
    BudgetsTerms,
    BudgetTerms,
    budget_from_wire,
    budget_saved_to_wire,
    budgets_from_wire,
    budgets_replaced_to_wire,
)
from gpucredits.wire.scalars import Slug, from_wire

PATH = "/v1/accounts/{account}/budgets"


async def post_budget(call: Call[BudgetRequest, NoQuery]) -> BudgetTerms:
    """Set a budget by its name; one that is open changes from its next period on."""
    account = account_param(call)
    org_id = await org_number(call, account)
    command = budget_from_wire(account, call.body)
    return budget_saved_to_wire(org_id, await submit(call, org_id, command, BudgetSaved))


async def put_budgets(call: Call[BudgetsRequest, NoQuery]) -> BudgetsTerms:
    """Replace all budgets of an account at once."""
    account = account_param(call)
    org_id = await org_number(call, account)
    command = budgets_from_wire(account, call.body)
    return budgets_replaced_to_wire(org_id, await submit(call, org_id, command, BudgetsReplaced))


async def delete_budget(call: Call[None, NoQuery]) -> BudgetTerms:
    """Let no further period of a budget begin; the one that is open runs to its end."""
    account = account_param(call)
    org_id = await org_number(call, account)
    command = EndBudget(account=account, name=budget_param(call))
    return budget_saved_to_wire(org_id, await submit(call, org_id, command, BudgetSaved))


def budget_param(call: AnyCall) -> str:
    """The name of a budget in the request's path."""
    try:
        return str(from_wire(Slug, call.params["budget"]))
    except ValueError as error:
        raise ProblemError("invalid_request", f"budget: {error}.", field="budget") from error


ROUTES = [
    Route(
        method="POST",
        path=PATH,
        summary="Set a budget of an account",
        handler=post_budget,
        permission=Permission.ISSUE,
        body=BudgetRequest,
        answer=BudgetTerms,
        needs_key=True,
        reasons=(*NO_ACCOUNT, *BAD_LIMIT, "window_ended"),
        tag="limits",
    ),
    Route(
        method="PUT",
        path=PATH,
        summary="Replace all budgets of an account",
        handler=put_budgets,
        permission=Permission.ISSUE,
        body=BudgetsRequest,
        answer=BudgetsTerms,
        needs_key=True,
        reasons=(*NO_ACCOUNT, *BAD_LIMIT, "window_ended"),
        tag="limits",
    ),
    Route(
        method="DELETE",
        path=f"{PATH}/{{budget}}",
        summary="Let no further period of a budget begin",
        handler=delete_budget,
        permission=Permission.ISSUE,
        answer=BudgetTerms,
        needs_key=True,
        reasons=(*NO_ACCOUNT, *NO_LIMIT),
        tag="limits",
    ),
]
