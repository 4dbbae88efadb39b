"""Handlers of accounts: open, change, suspend, resume."""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import ProblemError, invalid
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import account_param, org_number, require, require_wider, visible
from gpucredits.api.submit import submit
from gpucredits.core.account import Status, org_of
from gpucredits.core.command import UpdateAccount
from gpucredits.core.outcome import AccountSaved
from gpucredits.service.access import Permission
from gpucredits.wire.account import (
    AccountAnswer,
    AccountChange,
    AccountRequest,
    account_to_wire,
    change_from_wire,
    create_from_wire,
)

_TERMS = "Only the system's own staff may give credit: use a prepaid account without a limit."


async def post_account(call: Call[AccountRequest, NoQuery]) -> AccountAnswer:
    """Open an account below one that exists; an org needs none above it."""
    path = visible(call, call.body.path)
    if "/" not in path:
        require(call.principal, Permission.CREATE_ORG, "Only a key for the system may open an org.")
    if call.body.model != "prepaid" or call.body.credit_limit:
        require(call.principal, Permission.SET_TERMS, _TERMS)
    if call.body.model == "prepaid" and call.body.credit_limit:
        raise _no_credit()
    outcome = await submit(call, org_of(path), create_from_wire(call.body), AccountSaved)
    return account_to_wire(outcome.account)


async def patch_account(call: Call[AccountChange, NoQuery]) -> AccountAnswer:
    """Change an account's terms or its metadata."""
    path = account_param(call)
    terms = (call.body.model, call.body.credit_limit, call.body.overdraft_limit)
    if any(each is not None for each in terms):
        require(call.principal, Permission.SET_TERMS, _TERMS)
    org_id = await org_number(call, path)
    if call.body.credit_limit and call.body.model == "prepaid":
        raise _no_credit()
    outcome = await submit(call, org_id, change_from_wire(path, call.body), AccountSaved)
    return account_to_wire(outcome.account)


async def post_suspend(call: Call[None, NoQuery]) -> AccountAnswer:
    """Admit nothing more below this account, and drain what runs."""
    return await _set_status(call, Status.SUSPENDED)


async def post_resume(call: Call[None, NoQuery]) -> AccountAnswer:
    """Admit again."""
    return await _set_status(call, Status.ACTIVE)


async def _set_status(call: Call[None, NoQuery], status: Status) -> AccountAnswer:
    path = account_param(call)
    require_wider(call, path)
    org_id = await org_number(call, path)
    command = UpdateAccount(path=path, status=status)
    return account_to_wire((await submit(call, org_id, command, AccountSaved)).account)


def _no_credit() -> ProblemError:
    return invalid(
        "credit_limit", "is for postpaid accounts: set the model to postpaid in the same request"
    )


ROUTES = [
    Route(
        method="POST",
        path="/v1/accounts",
        summary="Open an account",
        handler=post_account,
        permission=Permission.CREATE_ACCOUNT,
        body=AccountRequest,
        answer=AccountAnswer,
        status=201,
        needs_key=True,
        reasons=(*NO_ACCOUNT, "account_exists", "parent_unknown"),
        tag="accounts",
    ),
    *(
        Route(
            method="POST",
            path=f"/v1/accounts/{{account}}/{verb}",
            summary=summary,
            handler=handler,
            permission=Permission.SUSPEND,
            answer=AccountAnswer,
            needs_key=True,
            reasons=NO_ACCOUNT,
            tag="accounts",
        )
        for verb, summary, handler in (
            ("suspend", "Admit nothing more and drain what runs", post_suspend),
            ("resume", "Admit again", post_resume),
        )
    ),
    Route(
        method="PATCH",
        path="/v1/accounts/{account}",
        summary="Change an account's terms or metadata",
        handler=patch_account,
        permission=Permission.CREATE_ACCOUNT,
        body=AccountChange,
        answer=AccountAnswer,
        needs_key=True,
        reasons=(*NO_ACCOUNT, "limit_invalid", "limit_in_use"),
        tag="accounts",
    ),
]
