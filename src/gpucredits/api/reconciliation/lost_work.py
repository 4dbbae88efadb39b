"""Handlers of lost work: checkpoints, claims, and the terms by which claims are paid."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.paging import (
    OneAccountQuery,
    TreePageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import NO_ACCOUNT, NO_LEASE
from gpucredits.api.http.scope import (
    AnyCall,
    account_exists,
    act_of,
    filter_of,
    lease_param,
    org_number,
    require,
    visible,
    visible_lease,
)
from gpucredits.core import ids
from gpucredits.core.change import Named
from gpucredits.core.money import format_credits
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reconciliation.lost_work import (
    Cause,
    LostRow,
    OrgFilter,
    claim,
    list_claims,
    report_checkpoint,
)
from gpucredits.service.reconciliation.terms import LOSS, LossTerms
from gpucredits.wire.change import filled, named_in
from gpucredits.wire.reconciliation.lost_work import (
    CAUSES,
    CLAIM_STATES,
    CheckpointAnswer,
    CheckpointRequest,
    LossTermsAnswer,
    LossTermsChange,
    LossTermsRequest,
    LostWorkAnswer,
    LostWorkPage,
    LostWorkRequest,
)

ENDED = Refused(
    Reason.RESERVATION_ENDED, "The reservation has ended: a checkpoint is reported while it runs."
)

NODE_FAILURE = (
    "Only staff of the whole system attests that a node failed: ask them to claim the lost work. A"
    " preemption is claimed by anybody who sees the lease."
)

route = Routes("reconciliation")


@route(
    "POST /v1/reservations/{reservation}:checkpoint",
    Permission.BEAT,
    reasons=(*NO_LEASE, "reservation_ended"),
    needs_key=False,
    client="report_checkpoint(reservation_id, checkpoint_ms)",
)
async def post_checkpoint(call: ApiRequest[CheckpointRequest, NoQuery]) -> CheckpointAnswer:
    """Report that a running job has saved its work; the latest checkpoint counts."""
    org_id, number = await lease_param(call)
    told = await call.services.run(
        report_checkpoint, org_id, number, call.body.checkpoint_ms, dry_run=call.dry_run
    )
    if told is None:
        raise RefusedError(ENDED)
    return CheckpointAnswer(
        reservation_id=ids.format_id(ids.RESERVATION, org_id, number), checkpoint_ms=told
    )


@route(
    "POST /v1/lost-work",
    Permission.ASK,
    reasons=(*NO_LEASE, "reservation_active", "loss_refused", "loss_refunded"),
    status=201,
    client="claim_lost_work(reservation_id, cause)",
)
async def post_lost_work(call: ApiRequest[LostWorkRequest, NoQuery]) -> LostWorkAnswer:
    """Claim the work that a lease lost when its node failed or it was preempted.

    The use after the last checkpoint goes back to the grants that paid, within the account's terms.
    The server knows preemptions. Only staff of the system attests that a node failed.
    """
    body = call.body
    if body.cause == "node_failure":
        require(call.principal, Permission.CORRECT, NODE_FAILURE)
    org_id, number = await visible_lease(call, body.reservation_id)
    row, call.replayed = await claim(
        call.services.ledger,
        act_of(call, org_id),
        number,
        Cause(CAUSES.index(body.cause)),
        body.checkpoint_ms,
        str(body.note),
    )
    return to_wire(row)


@route("GET /v1/lost-work", Permission.READ, reasons=NO_ACCOUNT, client="lost_work_page(account)")
async def get_lost_work(call: ApiRequest[None, TreePageQuery]) -> LostWorkPage:
    """List claims of lost work, the newest lease first."""
    query = call.query
    which = await filter_of(call, OrgFilter)
    rows = await call.services.run(list_claims, which)
    rows, following = page(rows, query, lambda row: numbered_place(row.org_id, row.reservation_id))
    return LostWorkPage(lost_work=[to_wire(row) for row in rows], next_cursor=following)


@route(
    "GET /v1/lost-work-terms",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="lost_work_terms(account)",
)
async def get_lost_work_terms(call: ApiRequest[None, OneAccountQuery]) -> LossTermsAnswer:
    """Get the terms of lost work that govern an account."""
    account = visible(call, call.query.account)
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    terms, owner = await call.services.run(LOSS.read, org_id, account)
    return terms_to_wire(account, terms, owner)


@route(
    "PUT /v1/lost-work-terms",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    client="set_lost_work_terms(account)",
)
async def put_lost_work_terms(call: ApiRequest[LossTermsRequest, NoQuery]) -> LossTermsAnswer:
    """Replace the terms of an account; they govern the accounts below that have none."""
    return await _set(call, call.body, None)


@route(
    "PATCH /v1/lost-work-terms",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    client="set_lost_work_terms(account)",
)
async def patch_lost_work_terms(call: ApiRequest[LossTermsChange, NoQuery]) -> LossTermsAnswer:
    """Change some of the terms of an account."""
    return await _set(call, filled(call.body, LossTermsRequest), named_in(call.body))


@route(
    "DELETE /v1/lost-work-terms",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    client="end_lost_work_terms(account)",
)
async def delete_lost_work_terms(call: ApiRequest[None, OneAccountQuery]) -> LossTermsAnswer:
    """End an account's own terms: those of the nearest account above hold again."""
    account = visible(call, call.query.account)
    org_id = await org_number(call, account)
    (terms, owner), call.replayed = await call.services.run(LOSS.end, act_of(call, org_id), account)
    return terms_to_wire(account, terms, owner)


async def _set(call: AnyCall, body: LossTermsRequest, named: Named) -> LossTermsAnswer:
    terms = LossTerms(
        body.hours_per_job, body.window_hours, body.unreported_hours, body.hours_per_account
    )
    account = visible(call, body.account)
    org_id = await org_number(call, account)
    act = act_of(call, org_id)
    saved, call.replayed = await call.services.run(LOSS.set, act, account, terms, named)
    return terms_to_wire(account, saved, account)


def to_wire(row: LostRow) -> LostWorkAnswer:
    """A claim as it is shown."""
    return LostWorkAnswer(
        reservation_id=ids.format_id(ids.RESERVATION, row.org_id, row.reservation_id),
        account=row.account,
        job_id=row.job_id,
        cause=CAUSES[row.cause],
        state=CLAIM_STATES[row.state],
        checkpoint_ms=row.checkpoint_ms,
        is_reported=row.is_reported,
        lost_ms=row.lost_ms,
        amount=format_credits(row.amount),
        claimed_by=row.claimed_by,
        note=row.note,
    )


def terms_to_wire(account: str, terms: LossTerms, owner: str) -> LossTermsAnswer:
    """The terms as they are shown."""
    return LossTermsAnswer(
        account=account,
        hours_per_job=terms.hours_per_job,
        window_hours=terms.window_hours,
        unreported_hours=terms.unreported_hours,
        hours_per_account=terms.hours_per_account,
        set_for=owner or None,
    )
