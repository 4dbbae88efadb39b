"""Handlers of leases: reserve, extend, settle, cancel, and their corrections."""

from __future__ import annotations

from http import HTTPStatus

from gpucredits.api.batch import Atomic, batch_by_org
from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import refusal_problem, status_of
from gpucredits.api.reasons import NO_LEASE, RESERVING
from gpucredits.api.scope import AnyCall, lease_param, org_number, visible, visible_lease
from gpucredits.api.submit import accepted, submit
from gpucredits.core.command import Beat, Cancel, Reserve
from gpucredits.core.outcome import Adjusted, Beaten, Closed, Outcome, Refunded, Reserved
from gpucredits.core.reasons import Refused
from gpucredits.service.access import Permission
from gpucredits.wire.correction import (
    CorrectionAnswer,
    CorrectionRequest,
    adjust_from_wire,
    correction_to_wire,
    refund_from_wire,
)
from gpucredits.wire.reservation import (
    BeatAnswer,
    CancelRequest,
    ClosedAnswer,
    ExtendRequest,
    ReservationAnswer,
    ReserveBatch,
    ReserveRequest,
    ReserveResult,
    ReserveResults,
    SettleRequest,
    beaten_to_wire,
    closed_to_wire,
    reserve_from_wire,
    reserved_to_wire,
    settle_from_wire,
)


async def post_reservation(call: Call[ReserveRequest, NoQuery]) -> ReservationAnswer:
    """Admit a job: hold credits for its first window."""
    account = visible(call, call.body.account)
    org_id = await org_number(call, account)
    outcome = await submit(call, org_id, reserve_from_wire(call.body), Reserved)
    return reserved_to_wire(org_id, outcome)


async def post_reservation_batch(call: Call[ReserveBatch, Atomic]) -> ReserveResults:
    """Admit many leases, each on its own or all or nothing."""
    commands = [reserve_from_wire(item) for item in call.body.items]
    for command in commands:
        visible(call, command.account)
    atomic = call.body.atomic or call.query.atomic
    outcomes = await batch_by_org(
        call, [(command.account, command) for command in commands], atomic=atomic
    )
    return ReserveResults(
        results=[
            await _reserve_result(call, command, outcome, position)
            for position, (command, outcome) in enumerate(zip(commands, outcomes, strict=True))
        ]
    )


async def post_extend(call: Call[ExtendRequest, NoQuery]) -> BeatAnswer:
    """A heartbeat for one lease: settle the slice and renew. Its seq makes it safe to repeat."""
    org_id, number = await lease_param(call)
    command = Beat(number, call.body.seq, call.body.used_ms)
    outcome = await submit(call, org_id, command, Beaten)
    return beaten_to_wire(call.params["reservation"], outcome)


async def post_settle(call: Call[SettleRequest, NoQuery]) -> ClosedAnswer:
    """End a job: settle what was used, release the rest."""
    org_id, number = await lease_param(call)
    outcome = await submit(call, org_id, settle_from_wire(number, call.body), Closed)
    return closed_to_wire(call.params["reservation"], outcome)


async def post_cancel(call: Call[CancelRequest, NoQuery]) -> ClosedAnswer:
    """Release the hold of a job that never started."""
    org_id, number = await lease_param(call)
    outcome = await submit(call, org_id, Cancel(reservation_id=number), Closed)
    return closed_to_wire(call.params["reservation"], outcome)


async def post_refund(call: Call[CorrectionRequest, NoQuery]) -> CorrectionAnswer:
    """Give settled credits back to the grants that paid."""
    text = call.body.reservation_id
    org_id, number = await visible_lease(call, text)
    outcome = await submit(call, org_id, refund_from_wire(number, call.body), Refunded)
    return correction_to_wire(org_id, text, outcome)


async def post_adjustment(call: Call[CorrectionRequest, NoQuery]) -> CorrectionAnswer:
    """Charge more for a reservation than was settled."""
    text = call.body.reservation_id
    org_id, number = await visible_lease(call, text)
    outcome = await submit(call, org_id, adjust_from_wire(number, call.body), Adjusted)
    return correction_to_wire(org_id, text, outcome)


async def _reserve_result(
    call: AnyCall, command: Reserve, outcome: Outcome, position: int
) -> ReserveResult:
    if isinstance(outcome, Refused):
        problem = refusal_problem(outcome, call.request_id, index=position)
        return ReserveResult(status=int(status_of(outcome.reason)), problem=problem)
    org_id = await org_number(call, command.account)
    lease = reserved_to_wire(org_id, accepted(outcome, Reserved))
    return ReserveResult(status=int(HTTPStatus.CREATED), reservation=lease)


ROUTES = [
    Route(
        method="POST",
        path="/v1/reservations",
        summary="Admit a job: hold credits for its first window",
        handler=post_reservation,
        permission=Permission.RESERVE,
        body=ReserveRequest,
        answer=ReservationAnswer,
        status=201,
        needs_key=True,
        reasons=RESERVING,
        tag="reservations",
    ),
    Route(
        method="POST",
        path="/v1/reservations:batch",
        summary="Admit many leases, each on its own or all or nothing",
        handler=post_reservation_batch,
        permission=Permission.RESERVE,
        body=ReserveBatch,
        query=Atomic,
        answer=ReserveResults,
        needs_key=True,
        reasons=RESERVING,
        tag="reservations",
    ),
    Route(
        method="POST",
        path="/v1/reservations/{reservation}:extend",
        summary="A heartbeat for one lease",
        handler=post_extend,
        permission=Permission.BEAT,
        body=ExtendRequest,
        answer=BeatAnswer,
        reasons=NO_LEASE,
        tag="reservations",
    ),
    Route(
        method="POST",
        path="/v1/reservations/{reservation}:settle",
        summary="End a job: settle what was used, release the rest",
        handler=post_settle,
        permission=Permission.CLOSE_LEASE,
        body=SettleRequest,
        is_body_optional=True,
        answer=ClosedAnswer,
        needs_key=True,
        reasons=(*NO_LEASE, "reservation_ended"),
        tag="reservations",
    ),
    Route(
        method="POST",
        path="/v1/reservations/{reservation}:cancel",
        summary="Release the hold of a job that never started",
        handler=post_cancel,
        permission=Permission.CLOSE_LEASE,
        body=CancelRequest,
        is_body_optional=True,
        answer=ClosedAnswer,
        needs_key=True,
        reasons=(*NO_LEASE, "reservation_ended", "reservation_started"),
        tag="reservations",
    ),
    *(
        Route(
            method="POST",
            path=path,
            summary=summary,
            handler=handler,
            permission=Permission.CORRECT,
            body=CorrectionRequest,
            answer=CorrectionAnswer,
            status=201,
            needs_key=True,
            reasons=(*NO_LEASE, *reasons),
            tag="credits",
        )
        for path, summary, handler, reasons in (
            (
                "/v1/refunds",
                "Give settled credits back to the grants that paid",
                post_refund,
                ("refund_exceeds",),
            ),
            (
                "/v1/adjustments",
                "Charge more for a reservation than was settled",
                post_adjustment,
                ("insufficient_credits",),
            ),
        )
    ),
]
