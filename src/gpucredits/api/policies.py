"""Handlers of limits, budgets and quotas: documents kept for an account."""

from __future__ import annotations

from typing import Any

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import ProblemError
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import (
    AnyCall,
    account_param,
    org_number,
    require_wider,
    unknown_account,
)
from gpucredits.api.submit import act_of
from gpucredits.service.access import Permission
from gpucredits.service.policies import AccountMissing, read_policy, set_policy
from gpucredits.store.settings import SettingsRow, encode_document
from gpucredits.wire.policy import (
    POLICY_BYTES_MAX,
    PolicyAnswer,
    PolicyRequest,
    check_document,
)
from gpucredits.wire.scalars import format_instant


async def get_limits(call: Call[None, NoQuery]) -> PolicyAnswer:
    """The limits set for an account."""
    return await _get(call, "limits")


async def put_limits(call: Call[PolicyRequest, NoQuery]) -> PolicyAnswer:
    """Replace the limits of an account."""
    return await _put(call, "limits")


async def get_budgets(call: Call[None, NoQuery]) -> PolicyAnswer:
    """The budgets set for an account."""
    return await _get(call, "budgets")


async def put_budgets(call: Call[PolicyRequest, NoQuery]) -> PolicyAnswer:
    """Replace the budgets of an account; an account with a budget pays for those below it."""
    return await _put(call, "budgets")


async def get_quotas(call: Call[None, NoQuery]) -> PolicyAnswer:
    """The quotas set for an account."""
    return await _get(call, "quotas")


async def put_quotas(call: Call[PolicyRequest, NoQuery]) -> PolicyAnswer:
    """Replace the quotas of an account."""
    return await _put(call, "quotas")


async def _get(call: AnyCall, kind: str) -> PolicyAnswer:
    account = account_param(call)
    org_id = await org_number(call, account)
    try:
        row = await read_policy(call.services.pool, org_id=org_id, account=account, kind=kind)
    except AccountMissing as error:
        raise unknown_account(account) from error
    return _to_wire(account, kind, row)


async def _put(call: Call[PolicyRequest, NoQuery], kind: str) -> PolicyAnswer:
    account = account_param(call)
    require_wider(call, account)
    document = call.body.settings
    try:
        check_document(document)
    except ValueError as error:
        raise ProblemError("invalid_request", f"settings: {error}.", field="settings") from error
    if len(encode_document(document)) > POLICY_BYTES_MAX:
        text = f"settings: must be at most {POLICY_BYTES_MAX} bytes of JSON."
        raise ProblemError("invalid_request", text, field="settings")
    org_id = await org_number(call, account)
    try:
        row, call.replayed = await set_policy(
            call.services.pool,
            act_of(call, org_id),
            account=account,
            kind=kind,
            document=document,
            actor=call.actor,
            request_id=call.request_id,
        )
    except AccountMissing as error:
        raise unknown_account(account) from error
    return _to_wire(account, kind, row)


def _to_wire(account: str, kind: str, row: SettingsRow) -> PolicyAnswer:
    return PolicyAnswer(
        account=account,
        kind=kind,
        settings=row.document,
        updated_at=format_instant(row.updated_at) if row.updated_at else None,
    )


def _routes() -> list[Route]:
    """Documents kept for an account."""
    table: list[tuple[str, Any, Any]] = [
        ("limits", get_limits, put_limits),
        ("budgets", get_budgets, put_budgets),
        ("quotas", get_quotas, put_quotas),
    ]
    rows = []
    for kind, get, put in table:
        path = f"/v1/accounts/{{account}}/{kind}"
        rows.append(
            Route(
                method="GET",
                path=path,
                summary=f"The {kind} set for an account",
                handler=get,
                permission=Permission.READ,
                answer=PolicyAnswer,
                reasons=NO_ACCOUNT,
                tag="policies",
            )
        )
        rows.append(
            Route(
                method="PUT",
                path=path,
                summary=f"Replace the {kind} of an account",
                handler=put,
                permission=Permission.SET_POLICY,
                body=PolicyRequest,
                answer=PolicyAnswer,
                needs_key=True,
                reasons=NO_ACCOUNT,
                tag="policies",
            )
        )
    return rows


ROUTES = _routes()
