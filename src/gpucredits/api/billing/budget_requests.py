"""Handlers of budget requests: ask, decide, cancel.

Owns: who may decide. Not who asked, not a key for the very account (those above it set its
bounds), and where credits are made, only the system's own staff.
"""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import ProblemError, RefusedError, invalid
from gpucredits.api.http.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.http.reasons import ASKING, DECIDING
from gpucredits.api.http.scope import (
    AnyCall,
    account_filter,
    number_param,
    org_number,
    require,
    require_wider,
    visible,
)
from gpucredits.api.http.submit import act_of
from gpucredits.core import ids
from gpucredits.core.request import BudgetRequest, RequestKind, RequestState
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.billing import budget_requests
from gpucredits.service.billing.budget_requests import RequestFilter, RequestRefused
from gpucredits.wire.request import (
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
from gpucredits.wire.scalars import AccountPath

_CREDIT = (
    "Only the system's own staff may approve what makes credits; name an account to take "
    "them from (take_from, --from on the command line)."
)


class RequestQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which requests to list: those of an account and of all below it."""

    account: AccountPath | None = None
    state: RequestStateName | None = None
    kind: RequestKindName | None = None


async def post_request(call: ApiRequest[AskRequest, NoQuery]) -> RequestAnswer:
    """Ask for more."""
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
    try:
        row, call.replayed = await budget_requests.ask(
            call.services.pool, act_of(call, org_id), wanted
        )
    except RequestRefused as error:
        raise RefusedError(error.refused) from error
    return request_to_wire(row)


async def get_requests(call: ApiRequest[None, RequestQuery]) -> RequestPage:
    """Requests within the caller's scope, the latest first."""
    query = call.query
    scope = account_filter(call, query.account)
    org_id = await org_number(call, scope) if scope else None
    rows = await budget_requests.list_requests(
        call.services.pool,
        RequestFilter(
            scope=scope,
            org_id=org_id,
            state=None if query.state is None else STATES[query.state],
            kind=None if query.kind is None else KINDS[query.kind],
            now=0,
            before=number_cursor(query, LAST),
            limit=query.limit + 1,
        ),
    )
    rows, following = page(rows, query, lambda row: row.request_id)
    return RequestPage(requests=[request_to_wire(row) for row in rows], next_cursor=following)


async def get_request(call: ApiRequest[None, NoQuery]) -> RequestAnswer:
    """One request."""
    return request_to_wire(await _found(call))


async def post_request_approve(call: ApiRequest[ApproveRequest | None, NoQuery]) -> RequestAnswer:
    """Approve a request, perhaps with other numbers, and do what it asks for."""
    row = await _to_decide(call)
    body = call.body or ApproveRequest()
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
    try:
        row, call.replayed = await budget_requests.approve(
            call.services.ledger,
            act_of(call, row.org_id),
            row.request_id,
            terms=terms,
            note=str(body.note or ""),
            by=call.principal.authority,
        )
    except RequestRefused as error:
        raise RefusedError(error.refused) from error
    return request_to_wire(row)


async def post_request_decline(call: ApiRequest[DeclineRequest, NoQuery]) -> RequestAnswer:
    """Decline a request with a note."""
    row = await _to_decide(call)
    if not call.body.note.strip():
        raise invalid("note", "must say why")
    return await _close(call, row, RequestState.DECLINED, str(call.body.note))


async def post_request_cancel(call: ApiRequest[None, NoQuery]) -> RequestAnswer:
    """Take back what one has asked for."""
    row = await _found(call)
    if row.asked_by != call.actor:
        raise ProblemError("forbidden", "Only the key that asked may cancel; staff may decline.")
    return await _close(call, row, RequestState.CANCELED, "")


async def _close(
    call: AnyCall, row: BudgetRequest, state: RequestState, note: str
) -> RequestAnswer:
    try:
        row, call.replayed = await budget_requests.close(
            call.services.pool,
            act_of(call, row.org_id),
            row.request_id,
            state=state,
            note=note,
        )
    except RequestRefused as error:
        raise RefusedError(error.refused) from error
    return request_to_wire(row)


async def _found(call: AnyCall) -> BudgetRequest:
    """The request in the path, if the caller's scope reaches its account."""
    number = number_param(call, "request", ids.REQUEST)
    row = None if number is None else await budget_requests.find(call.services.pool, *number)
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


ROUTES = [
    Route(
        method="POST",
        path="/v1/requests",
        summary="Ask for more: credits, a boost, a bigger budget",
        handler=post_request,
        permission=Permission.ASK,
        body=AskRequest,
        answer=RequestAnswer,
        status=201,
        needs_key=True,
        reasons=ASKING,
        tag="budget_requests",
    ),
    Route(
        method="GET",
        path="/v1/requests",
        summary="Requests within the caller's scope",
        handler=get_requests,
        permission=Permission.READ,
        query=RequestQuery,
        answer=RequestPage,
        reasons=("account_unknown",),
        tag="budget_requests",
    ),
    Route(
        method="GET",
        path="/v1/requests/{request}",
        summary="One request",
        handler=get_request,
        permission=Permission.READ,
        answer=RequestAnswer,
        reasons=("request_unknown",),
        tag="budget_requests",
    ),
    Route(
        method="POST",
        path="/v1/requests/{request}:approve",
        summary="Approve a request and do what it asks for",
        handler=post_request_approve,
        permission=Permission.DECIDE_REQUEST,
        body=ApproveRequest,
        is_body_optional=True,
        answer=RequestAnswer,
        needs_key=True,
        reasons=DECIDING,
        tag="budget_requests",
    ),
    Route(
        method="POST",
        path="/v1/requests/{request}:decline",
        summary="Decline a request with a note",
        handler=post_request_decline,
        permission=Permission.DECIDE_REQUEST,
        body=DeclineRequest,
        answer=RequestAnswer,
        needs_key=True,
        reasons=("request_unknown", "request_state"),
        tag="budget_requests",
    ),
    Route(
        method="POST",
        path="/v1/requests/{request}:cancel",
        summary="Take back what one has asked for",
        handler=post_request_cancel,
        permission=Permission.ASK,
        answer=RequestAnswer,
        needs_key=True,
        reasons=("request_unknown", "request_state"),
        tag="budget_requests",
    ),
]
