"""Handlers of budget requests: ask, decide, cancel.

Owns: who may decide. Not who asked, not a key for the very account (those above it set its
bounds), and where credits are made, only the system's own staff.
"""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, RefusedError, invalid
from gpucredits.api.http.paging import (
    TreePageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import ASKING, DECIDING
from gpucredits.api.http.scope import (
    AnyCall,
    act_of,
    filter_of,
    number_param,
    org_number,
    require,
    require_wider,
    visible,
)
from gpucredits.core import ids
from gpucredits.core.request import BudgetRequest, RequestKind, RequestState
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.billing import budget_requests
from gpucredits.service.billing.budget_requests import RequestFilter
from gpucredits.wire.billing.request import (
    KINDS,
    STATES,
    ApproveRequest,
    AskRequest,
    DeclineRequest,
    RequestAnswer,
    RequestKindName,
    RequestPage,
    RequestStateName,
    asked_terms,
    given_terms,
    request_to_wire,
)
from gpucredits.wire.documented import doc

_CREDIT = (
    "Only the system's own staff may approve what makes credits; name an account to take "
    "them from (take_from, --from on the command line)."
)


route = Routes("budget_requests")


class RequestQuery(TreePageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which requests to list: those of an account and of all below it."""

    state: Annotated[RequestStateName | None, doc("Only requests in this state.")] = None
    kind: Annotated[RequestKindName | None, doc("Only requests of this kind.")] = None


@route(
    "POST /v1/requests",
    Permission.ASK,
    reasons=ASKING,
    status=201,
    client="ask(account, kind, amount)",
)
async def post_request(call: ApiRequest[AskRequest, NoQuery]) -> RequestAnswer:
    """Ask for more credits, for a boost of a limit, or for a bigger budget."""
    body = call.body
    account = visible(call, body.account)
    _check(body)
    org_id = await org_number(call, account)
    terms = asked_terms(body)
    wanted = BudgetRequest(
        org_id=org_id,
        request_id=0,
        account=account,
        kind=KINDS[body.kind],
        target_id=_quota(call, org_id),
        budget=str(body.budget or "default") if body.kind == "budget" else "",
        amount=terms.amount,
        refill_per_hour=terms.refill_per_hour,
        ends_at=terms.ends_at,
        reason=str(body.reason),
        asked_by=call.actor,
        asked_at=0,
        expires_at=0,
    )
    row, call.replayed = await call.services.run(budget_requests.ask, act_of(call, org_id), wanted)
    return request_to_wire(row)


@route(
    "GET /v1/requests",
    Permission.READ,
    reasons=("account_unknown",),
    client="request_page(account)",
)
async def get_requests(call: ApiRequest[None, RequestQuery]) -> RequestPage:
    """List budget requests, the latest first.

    ``account`` means the account and everything below it; without it, the scope of the key.
    """
    query = call.query
    state = None if query.state is None else STATES[query.state]
    kind = None if query.kind is None else KINDS[query.kind]
    which = await filter_of(call, RequestFilter, state=state, kind=kind, now=0)
    rows = await call.services.run(budget_requests.list_requests, which)
    rows, following = page(rows, query, lambda row: numbered_place(row.org_id, row.request_id))
    return RequestPage(requests=[request_to_wire(row) for row in rows], next_cursor=following)


@route(
    "GET /v1/requests/{request}",
    Permission.READ,
    reasons=("request_unknown",),
    client="request(request_id)",
)
async def get_request(call: ApiRequest[None, NoQuery]) -> RequestAnswer:
    """Get one budget request."""
    return request_to_wire(await _found(call))


@route(
    "POST /v1/requests/{request}:approve",
    Permission.DECIDE_REQUEST,
    reasons=DECIDING,
    is_body_optional=True,
    client="approve_request(request_id)",
)
async def post_request_approve(call: ApiRequest[ApproveRequest, NoQuery]) -> RequestAnswer:
    """Approve a budget request and carry it out.

    Numbers that are given replace those that were asked for.
    """
    row = await _to_decide(call)
    body = call.body
    if body.take_from is not None:
        _check_source(call, row, body)
    elif budget_requests.is_about_credit(row.kind):
        require(call.principal, Permission.ISSUE, _CREDIT)
    try:
        terms = given_terms(body, row)
    except ValueError as error:
        raise invalid("amount", str(error)) from error
    if terms.refill_per_hour and row.kind is not RequestKind.RATE_LIMIT:
        raise invalid("refill_per_hour", "is for requests about a rate limit")
    row, call.replayed = await budget_requests.approve(
        call.services.ledger,
        act_of(call, row.org_id),
        row.request_id,
        terms=terms,
        note=str(body.note or ""),
        by=call.principal.authority,
    )
    return request_to_wire(row)


@route(
    "POST /v1/requests/{request}:decline",
    Permission.DECIDE_REQUEST,
    reasons=("request_unknown", "request_state"),
    client="decline_request(request_id, note)",
)
async def post_request_decline(call: ApiRequest[DeclineRequest, NoQuery]) -> RequestAnswer:
    """Decline a budget request, and say why."""
    row = await _to_decide(call)
    if not call.body.note.strip():
        raise invalid("note", "must say why")
    return await _close(call, row, RequestState.DECLINED, str(call.body.note))


@route(
    "POST /v1/requests/{request}:cancel",
    Permission.ASK,
    reasons=("request_unknown", "request_state"),
    client="cancel_request(request_id)",
)
async def post_request_cancel(call: ApiRequest[None, NoQuery]) -> RequestAnswer:
    """Cancel a budget request that the same key made."""
    row = await _found(call)
    if row.asked_by != call.actor:
        raise ProblemError("forbidden", "Only the key that asked may cancel; staff may decline.")
    return await _close(call, row, RequestState.CANCELED, "")


async def _close(
    call: AnyCall, row: BudgetRequest, state: RequestState, note: str
) -> RequestAnswer:
    row, call.replayed = await call.services.run(
        budget_requests.close,
        act_of(call, row.org_id),
        row.request_id,
        state=state,
        note=note,
    )
    return request_to_wire(row)


async def _found(call: AnyCall) -> BudgetRequest:
    """The request in the path, if the caller's scope reaches its account."""
    number = number_param(call, "request", ids.REQUEST)
    row = None if number is None else await call.services.run(budget_requests.find, *number)
    if row is None or not sees(call.principal, row.account):
        raise RefusedError(budget_requests.UNKNOWN)
    return row


async def _to_decide(call: AnyCall) -> BudgetRequest:
    """The request in the path, if the caller may decide about it."""
    row = await _found(call)
    require_wider(call, row.account)
    if row.asked_by == call.actor:
        raise ProblemError("forbidden", "Other staff must decide about what this key asked for.")
    return row


def _quota(call: ApiRequest[AskRequest, NoQuery], org_id: int) -> int:
    """The number of the quota that is to be raised; 0 where there can be none."""
    if call.body.quota_id is None:
        return 0
    try:
        owner, number = ids.parse_id(ids.QUOTA, call.body.quota_id)
    except ValueError as error:
        raise invalid("quota_id", str(error)) from error
    return number if owner == org_id else 0


def _check_source(call: AnyCall, row: BudgetRequest, body: ApproveRequest) -> None:
    """Refuse to take credits where they cannot be taken, or by whom."""
    if row.kind is not RequestKind.CREDITS:
        raise invalid("take_from", "is for requests about credits")
    if body.ends_at is not None:
        raise invalid("ends_at", "does not go with take_from: credits that move keep their windows")
    require(call.principal, Permission.TRANSFER, _CREDIT)
    visible(call, str(body.take_from))


def _check(body: AskRequest) -> None:
    """Refuse what does not fit the kind of request."""
    if not body.reason.strip():
        raise invalid("reason", "must say why")
    is_boost = body.kind in ("quota", "rate_limit")
    for field, is_given, is_wanted, is_allowed in (
        ("ends_at", body.ends_at is not None, is_boost, True),
        ("quota_id", body.quota_id is not None, body.kind == "quota", body.kind == "quota"),
        ("refill_per_hour", body.refill_per_hour is not None, False, body.kind == "rate_limit"),
        ("budget", body.budget is not None, False, body.kind == "budget"),
    ):
        if is_wanted and not is_given:
            raise invalid(field, f"must be given to ask for more of a {body.kind}")
        if is_given and not is_allowed:
            raise invalid(field, f"does not belong to a request about {body.kind}")
