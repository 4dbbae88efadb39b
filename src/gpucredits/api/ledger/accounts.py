"""Handlers of accounts: open, change, suspend, resume."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.overdue import name_statement
from gpucredits.api.http.reasons import NO_ACCOUNT, SET_ABOVE
from gpucredits.api.http.scope import (
    account_param,
    bounded_account,
    org_number,
    require,
    require_wider,
    submit,
    visible,
)
from gpucredits.core.account import Status, org_of
from gpucredits.core.command import UpdateAccount
from gpucredits.core.outcome import AccountSaved
from gpucredits.core.reasons import Refused
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.wire.change import named_in
from gpucredits.wire.ledger.account import (
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

_CREDIT = "Only the system's own staff may give credit: use a prepaid account without a limit."
_TERMS = (
    "Only the system's own staff may set model, credit_limit, overdraft_limit and "
    "window_max_seconds; this key may set metadata, and funding of accounts below its own."
)


route = Routes("accounts")


@route(
    "POST /v1/accounts",
    Permission.CREATE_ACCOUNT,
    reasons=(*NO_ACCOUNT, "account_exists", "parent_unknown", "funding_invalid"),
    status=201,
    client="create_account(path)",
)
async def post_account(call: ApiRequest[AccountRequest, NoQuery]) -> AccountAnswer:
    """Open an account such as ``acme``, ``acme/vision`` or ``acme/vision/alice``.

    The account above must exist; an org has none above.
    """
    path = visible(call, call.body.path)
    if "/" not in path:
        require(call.principal, Permission.CREATE_ORG, "Only a key for the system may open an org.")
    if call.body.model != "prepaid" or call.body.credit_limit:
        require(call.principal, Permission.SET_TERMS, _CREDIT)
    if call.body.model == "prepaid" and call.body.credit_limit:
        raise _no_credit()
    outcome = await submit(call, org_of(path), create_from_wire(call.body), AccountSaved)
    return account_to_wire(outcome.account)


@route(
    "PATCH /v1/accounts/{account}",
    Permission.CREATE_ACCOUNT,
    reasons=(*NO_ACCOUNT, "limit_invalid", "limit_in_use", "funding_invalid"),
    client="update_account(path:account)",
)
async def patch_account(call: ApiRequest[AccountChange, NoQuery]) -> AccountAnswer:
    """Change some terms and labels of an account.

    A label that is null is removed.
    """
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


@route(
    "PUT /v1/accounts/{account}",
    Permission.SET_TERMS,
    reasons=(*NO_ACCOUNT, "limit_invalid", "limit_in_use", "funding_invalid"),
    client="update_account(path:account)",
)
async def put_account(call: ApiRequest[AccountTerms, NoQuery]) -> AccountAnswer:
    """Replace all terms and labels of an account.

    Terms that are left out get their defaults.
    """
    path = account_param(call)
    org_id = await org_number(call, path)
    if call.body.credit_limit and call.body.model == "prepaid":
        raise _no_credit()
    outcome = await submit(call, org_id, terms_from_wire(path, call.body), AccountSaved)
    return account_to_wire(outcome.account)


@route(
    "POST /v1/accounts/{account}/suspend",
    Permission.SUSPEND,
    reasons=NO_ACCOUNT,
    client="suspend(path:account)",
)
async def post_suspend(call: ApiRequest[None, NoQuery]) -> StatusAnswer:
    """Suspend an account: admit nothing more below it, and drain what runs."""
    return await _set_status(call, Status.SUSPENDED)


@route(
    "POST /v1/accounts/{account}/resume",
    Permission.SUSPEND,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="resume(path:account)",
)
async def post_resume(call: ApiRequest[None, NoQuery]) -> StatusAnswer:
    """Lift an operator's suspension of an account.

    The ``note`` says what else keeps the account from admitting work.
    """
    return await _set_status(call, Status.ACTIVE)


async def _set_status(call: ApiRequest[None, NoQuery], status: Status) -> StatusAnswer:
    path = bounded_account(call)
    org_id = await org_number(call, path)
    command = UpdateAccount(path=path, status=status, by=call.principal.authority)
    saved = await submit(call, org_id, command, AccountSaved)
    note = None if saved.stands is None else await _what_stands(call, path, saved.stands)
    return status_to_wire(saved.account, note)


async def _what_stands(call: ApiRequest[None, NoQuery], path: str, stands: Refused) -> str:
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
