"""Handlers of credits coming in and moving: issue, top-up, transfer."""

from __future__ import annotations

from http import HTTPStatus

from gpucredits.api.http.batch import Atomic, batch_by_org, begin
from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError, refusal_problem, status_of
from gpucredits.api.http.reasons import GRANTING, NO_ACCOUNT, TOPUP_DECISION
from gpucredits.api.http.scope import (
    TOPUP_UNKNOWN,
    AnyCall,
    accepted,
    org_number,
    require,
    saved,
    submit,
    visible,
)
from gpucredits.core import ids
from gpucredits.core.command import (
    ConfirmTopUp,
    FailTopUp,
    Issue,
    ReverseTopUp,
)
from gpucredits.core.outcome import Granted, Outcome, ToppedUp, Transferred
from gpucredits.core.reasons import Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.wire.ledger.credit import (
    GrantAnswer,
    IssueBatch,
    IssueRequest,
    IssueResult,
    IssueResults,
    TopUpAnswer,
    TopUpRequest,
    TransferAnswer,
    TransferRequest,
    granted_to_wire,
    issue_from_wire,
    topup_from_wire,
    topup_to_wire,
    transfer_from_wire,
    transfer_to_wire,
)

route = Routes("credits")


@route(
    "POST /v1/credits/issue",
    Permission.ISSUE,
    reasons=GRANTING,
    status=201,
    client="issue(account, amount)",
)
async def post_issue(call: ApiRequest[IssueRequest, NoQuery]) -> GrantAnswer:
    """Grant credits to an account.

    The credits are valid on [starts_at, expires_at).
    """
    account = visible(call, call.body.account)
    return await saved(call, account, issue_from_wire(call.body), Granted, granted_to_wire)


@route(
    "POST /v1/credits/issue:batch",
    Permission.ISSUE,
    reasons=(*GRANTING, "batch_incomplete"),
    client="issue_all(items)",
)
async def post_issue_batch(call: ApiRequest[IssueBatch, Atomic]) -> IssueResults:
    """Make many grants, each on its own or all or nothing.

    Each item has the fields of a single issue. ``atomic``: all or nothing.
    """
    commands = [issue_from_wire(item) for item in call.body.items]
    for command in commands:
        visible(call, command.account)
    atomic = call.body.atomic or call.query.atomic
    orgs = await begin(call, [command.account for command in commands], atomic=atomic)
    items = [(command.account, command) for command in commands]
    outcomes = await batch_by_org(call, orgs, items, atomic=atomic)
    return IssueResults(
        results=[
            await _issue_result(call, command, outcome, position)
            for position, (command, outcome) in enumerate(zip(commands, outcomes, strict=True))
        ]
    )


@route(
    "POST /v1/topups",
    Permission.RECORD_TOPUP,
    reasons=(*GRANTING, "reference_used"),
    status=201,
    client="create_topup(account, amount)",
)
async def post_topup(call: ApiRequest[TopUpRequest, NoQuery]) -> TopUpAnswer:
    """Record a payment.

    Only a confirmed payment makes a grant. Keys that may decide about top-ups may record the
    payment as confirmed at once.
    """
    account = visible(call, call.body.account)
    if call.body.status == "confirmed":
        require(
            call.principal,
            Permission.DECIDE_TOPUP,
            "Only the system's own staff may record a top-up as confirmed; record it as pending.",
        )
    return await saved(call, account, topup_from_wire(call.body), ToppedUp, topup_to_wire)


@route(
    "POST /v1/topups/{topup}:confirm",
    Permission.DECIDE_TOPUP,
    reasons=TOPUP_DECISION,
    client="confirm_topup(topup_id)",
)
async def post_topup_confirm(call: ApiRequest[None, NoQuery]) -> TopUpAnswer:
    """Confirm that a payment arrived, and grant the credits."""
    return await _decide(call, ConfirmTopUp)


@route(
    "POST /v1/topups/{topup}:fail",
    Permission.DECIDE_TOPUP,
    reasons=TOPUP_DECISION,
    client="fail_topup(topup_id)",
)
async def post_topup_fail(call: ApiRequest[None, NoQuery]) -> TopUpAnswer:
    """Record that a payment will not arrive."""
    return await _decide(call, FailTopUp)


@route(
    "POST /v1/topups/{topup}:reverse",
    Permission.DECIDE_TOPUP,
    reasons=TOPUP_DECISION,
    client="reverse_topup(topup_id)",
)
async def post_topup_reverse(call: ApiRequest[None, NoQuery]) -> TopUpAnswer:
    """Record that a payment was taken back.

    Credits that were already spent become debt.
    """
    return await _decide(call, ReverseTopUp)


@route(
    "POST /v1/credits/transfer",
    Permission.TRANSFER,
    reasons=(
        *NO_ACCOUNT,
        "account_suspended",
        "cross_org",
        "same_account",
        "grants_full",
        "insufficient_credits",
    ),
    status=201,
    client="transfer(source, target, amount)",
)
async def post_transfer(call: ApiRequest[TransferRequest, NoQuery]) -> TransferAnswer:
    """Move credits that are not held between two accounts of one org."""
    source = visible(call, call.body.source)
    visible(call, call.body.target)
    return await saved(call, source, transfer_from_wire(call.body), Transferred, transfer_to_wire)


async def _decide(
    call: AnyCall, decision: type[ConfirmTopUp | FailTopUp | ReverseTopUp]
) -> TopUpAnswer:
    """Decide about the top-up in the request's path."""
    org_id, number = topup_param(call)
    outcome = await submit(call, org_id, decision(topup_id=number), ToppedUp)
    return topup_to_wire(org_id, outcome)


async def _issue_result(
    call: AnyCall, command: Issue, outcome: Outcome, position: int
) -> IssueResult:
    if isinstance(outcome, Refused):
        problem = refusal_problem(outcome, call.request_id, index=position)
        return IssueResult(status=int(status_of(outcome.reason)), problem=problem)
    org_id = await org_number(call, command.account)
    grant = granted_to_wire(org_id, accepted(outcome, Granted))
    return IssueResult(status=int(HTTPStatus.CREATED), grant=grant)


def topup_param(call: AnyCall) -> tuple[int, int]:
    """(org, number) of the top-up in the request's path."""
    try:
        org_id, number = ids.parse_id(ids.TOPUP, call.params["topup"])
    except ValueError as error:
        raise RefusedError(TOPUP_UNKNOWN) from error
    if org_id >= 2**31 or number >= 2**63:
        raise RefusedError(TOPUP_UNKNOWN)
    return org_id, number
