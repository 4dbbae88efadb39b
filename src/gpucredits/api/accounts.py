"""Handlers of accounts: open, change, suspend, resume."""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import ProblemError, invalid
from gpucredits.api.overdue import name_statement
from gpucredits.api.reasons import NO_ACCOUNT, SET_ABOVE
from gpucredits.api.scope import account_param, org_number, require, require_wider, visible
from gpucredits.api.submit import submit
from gpucredits.core.account import Status, org_of
from gpucredits.core.command import UpdateAccount
from gpucredits.core.outcome import AccountSaved
from gpucredits.core.reasons import Refused
from gpucredits.service.access import Permission, sees
from gpucredits.wire.account import (
    AccountAnswer,
    AccountChange,
    AccountRequest,
    AccountTerms,
    StatusAnswer,
    account_to_wire,
    change_from_wire,
    create_from_wire,
    status_to_wire,
    terms_from_wire,
)
from gpucredits.wire.change import named_in

_CREDIT = "Only the system's own staff may give credit: use a prepaid account without a limit."
_TERMS = (
    "Only the system's own staff may set model, credit_limit, overdraft_limit and "
    "window_max_seconds; this key may set metadata, and funding of accounts below its own."
)


async def post_account(call: Call[AccountRequest, NoQuery]) -> AccountAnswer:
    """Open an account below one that exists; an org needs none above it."""
    path = visible(call, call.body.path)
    if "/" not in path:
        require(call.principal, Permission.CREATE_ORG, "Only a key for the system may open an org.")
    if call.body.model != "prepaid" or call.body.credit_limit:
        require(call.principal, Permission.SET_TERMS, _CREDIT)
    if call.body.model == "prepaid" and call.body.credit_limit:
        raise _no_credit()
    outcome = await submit(call, org_of(path), create_from_wire(call.body), AccountSaved)
    return account_to_wire(outcome.account)


async def patch_account(call: Call[AccountChange, NoQuery]) -> AccountAnswer:
    """Change what is named of an account's terms and labels; a label that is null goes."""
    path = account_param(call)
    if named_in(call.body) - {"metadata", "funding"}:
        require(call.principal, Permission.SET_TERMS, _TERMS)
    if named_in(call.body) & {"funding", "window_max_seconds"}:
        require_wider(call, path)
    org_id = await org_number(call, path)
    if call.body.credit_limit and call.body.model == "prepaid":
        raise _no_credit()
    outcome = await submit(call, org_id, change_from_wire(path, call.body), AccountSaved)
    return account_to_wire(outcome.account)


async def put_account(call: Call[AccountTerms, NoQuery]) -> AccountAnswer:
    """Replace all terms and labels of an account; what is left out has its default."""
    path = account_param(call)
    org_id = await org_number(call, path)
    if call.body.credit_limit and call.body.model == "prepaid":
        raise _no_credit()
    outcome = await submit(call, org_id, terms_from_wire(path, call.body), AccountSaved)
    return account_to_wire(outcome.account)


async def post_suspend(call: Call[None, NoQuery]) -> StatusAnswer:
    """Admit nothing more below this account, and drain what runs."""
    return await _set_status(call, Status.SUSPENDED)


async def post_resume(call: Call[None, NoQuery]) -> StatusAnswer:
    """Lift an operator's suspension; the note says what else keeps the account from admitting."""
    return await _set_status(call, Status.ACTIVE)


async def _set_status(call: Call[None, NoQuery], status: Status) -> StatusAnswer:
    path = account_param(call)
    require_wider(call, path)
    org_id = await org_number(call, path)
    command = UpdateAccount(path=path, status=status, by=call.principal.authority)
    saved = await submit(call, org_id, command, AccountSaved)
    note = None if saved.stands is None else await _what_stands(call, path, saved.stands)
    return status_to_wire(saved.account, note)


async def _what_stands(call: Call[None, NoQuery], path: str, stands: Refused) -> str:
    """Why an account that was resumed admits nothing all the same."""
    cause = str(stands.detail.get("account", path))
    if not sees(call.principal, cause):
        return f"{path} still admits nothing: an account above it is paused."
    named = await name_statement(call, stands, {})
    return f"{path} still admits nothing. {named.message}"


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
        reasons=(*NO_ACCOUNT, "account_exists", "parent_unknown", "funding_invalid"),
        tag="accounts",
    ),
    *(
        Route(
            method="POST",
            path=f"/v1/accounts/{{account}}/{verb}",
            summary=summary,
            handler=handler,
            permission=Permission.SUSPEND,
            answer=StatusAnswer,
            needs_key=True,
            reasons=reasons,
            tag="accounts",
        )
        for verb, summary, handler, reasons in (
            ("suspend", "Admit nothing more and drain what runs", post_suspend, NO_ACCOUNT),
            ("resume", "Admit again", post_resume, (*NO_ACCOUNT, *SET_ABOVE)),
        )
    ),
    Route(
        method="PATCH",
        path="/v1/accounts/{account}",
        summary="Change what is named of an account's terms and labels",
        handler=patch_account,
        permission=Permission.CREATE_ACCOUNT,
        body=AccountChange,
        answer=AccountAnswer,
        needs_key=True,
        reasons=(*NO_ACCOUNT, "limit_invalid", "limit_in_use", "funding_invalid"),
        tag="accounts",
    ),
    Route(
        method="PUT",
        path="/v1/accounts/{account}",
        summary="Replace all terms and labels of an account",
        handler=put_account,
        permission=Permission.SET_TERMS,
        body=AccountTerms,
        answer=AccountAnswer,
        needs_key=True,
        reasons=(*NO_ACCOUNT, "limit_invalid", "limit_in_use", "funding_invalid"),
        tag="accounts",
    ),
]
