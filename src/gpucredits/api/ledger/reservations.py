"""Handlers of leases: reserve, extend, settle, cancel, and their corrections."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from gpucredits.api.dispatch import pool_admission
from gpucredits.api.http.batch import Atomic, batch_by_org, begin
from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import (
    ProblemError,
    RefusedError,
    problem_of,
    refusal_problem,
    status_of,
)
from gpucredits.api.http.overdue import Known, name_statement
from gpucredits.api.http.reasons import NO_LEASE, RESERVING
from gpucredits.api.http.scope import AnyCall, lease_param, org_number, visible, visible_lease
from gpucredits.api.http.submit import accepted, outcome_of, submit
from gpucredits.core.account import org_of
from gpucredits.core.command import Cancel, Reserve
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Adjusted, Closed, Outcome, Queued, Refunded, Reserved
from gpucredits.core.reasons import Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.service.dispatch.queue import QueueOptions
from gpucredits.service.write.errors import complete
from gpucredits.service.write.loop_turns import long_step
from gpucredits.wire.beat_result import beaten_to_wire
from gpucredits.wire.correction import (
    CorrectionAnswer,
    CorrectionRequest,
    adjust_from_wire,
    correction_to_wire,
    refund_from_wire,
)
from gpucredits.wire.heartbeat import BeatAnswer, ExtendRequest
from gpucredits.wire.queue import QueueAnswer
from gpucredits.wire.reservation import (
    CancelRequest,
    ClosedAnswer,
    ReservationAnswer,
    ReserveBatch,
    ReserveRequest,
    ReserveResult,
    ReserveResults,
    SettleRequest,
    closed_to_wire,
    reserve_from_wire,
    reserved_to_wire,
    settle_from_wire,
)

Told = Outcome | QueueAnswer | ProblemError  # what became of an item of a batch


async def post_reservation(
    call: ApiRequest[ReserveRequest, NoQuery],
) -> ReservationAnswer | QueueAnswer:
    """Admit a job: hold credits for its first window. With ``wait`` it may wait for its turn."""
    account = visible(call, call.body.account)
    org_id = await org_number(call, account)
    pool_admission.permitted(call, call.body)
    command = reserve_from_wire(call.body, call.principal.scope)
    told: Outcome | QueueAnswer
    if pool_admission.needs_turn(call, call.body):
        wish = pool_admission.wish_of(call, call.body, command)
        told, call.replayed = await pool_admission.take_turn(call, org_id, wish)
    else:
        told = await outcome_of(call, org_id, command)
    if isinstance(told, Queued):
        [told] = await pool_admission.resolve(call, org_id, told)
    if isinstance(told, QueueAnswer):
        call.status = int(HTTPStatus.ACCEPTED)
        return told
    return reserved_to_wire(org_id, accepted(told, Reserved))


async def post_reservation_batch(call: ApiRequest[ReserveBatch, Atomic]) -> ReserveResults:
    """Admit many leases, each on its own or all or nothing."""
    commands = [reserve_from_wire(item, call.principal.scope) for item in call.body.items]
    for item, command in zip(call.body.items, commands, strict=True):
        visible(call, command.account)
        pool_admission.permitted(call, item)
    atomic = call.body.atomic or call.query.atomic
    queued = {
        place: pool_admission.wish_of(call, item, command)
        for place, (item, command) in enumerate(zip(call.body.items, commands, strict=True))
        if pool_admission.needs_turn(call, item)
    }
    told = await (
        _reserve_together(call, commands)
        if atomic and queued
        else _reserve_all(call, commands, queued, atomic=atomic)
    )
    known: Known = {}
    results: list[ReserveResult | BaseException] = []
    for place, (command, each) in enumerate(zip(commands, told, strict=True)):
        try:
            results.append(await _reserve_result(call, command, each, place, known))
        except ProblemError as error:  # there is no answer yet
            results.append(error)
    return ReserveResults(results=complete(results))


async def post_extend(call: ApiRequest[ExtendRequest, NoQuery]) -> BeatAnswer:
    """A heartbeat for one lease: settle the slice and renew. Its seq makes it safe to repeat."""
    org_id, number = await lease_param(call)
    command = Beat(number, call.body.seq, call.body.used_ms)
    outcome = await submit(call, org_id, command, BeatResult)
    return beaten_to_wire(call.params["reservation"], outcome)


async def post_settle(call: ApiRequest[SettleRequest, NoQuery]) -> ClosedAnswer:
    """End a job: settle what was used, release the rest."""
    org_id, number = await lease_param(call)
    outcome = await submit(call, org_id, settle_from_wire(number, call.body), Closed)
    call.services.gpu_pools.room_came_free()
    return closed_to_wire(call.params["reservation"], outcome)


async def post_cancel(call: ApiRequest[CancelRequest, NoQuery]) -> ClosedAnswer:
    """Release the hold of a job that never started."""
    org_id, number = await lease_param(call)
    outcome = await submit(call, org_id, Cancel(reservation_id=number), Closed)
    call.services.gpu_pools.room_came_free()
    return closed_to_wire(call.params["reservation"], outcome)


async def post_refund(call: ApiRequest[CorrectionRequest, NoQuery]) -> CorrectionAnswer:
    """Give settled credits back to the grants that paid."""
    text = call.body.reservation_id
    org_id, number = await visible_lease(call, text)
    outcome = await submit(call, org_id, refund_from_wire(number, call.body), Refunded)
    return correction_to_wire(org_id, text, outcome)


async def post_adjustment(call: ApiRequest[CorrectionRequest, NoQuery]) -> CorrectionAnswer:
    """Charge more for a reservation than was settled."""
    text = call.body.reservation_id
    org_id, number = await visible_lease(call, text)
    outcome = await submit(call, org_id, adjust_from_wire(number, call.body), Adjusted)
    return correction_to_wire(org_id, text, outcome)


async def _reserve_all(
    call: ApiRequest[ReserveBatch, Atomic],
    commands: list[Reserve],
    queued: Mapping[int, QueueOptions],
    *,
    atomic: bool,
) -> list[Told]:
    """A batch whose items stand alone, or stay out of pools; some may go through the queue."""
    orgs = await begin(call, [command.account for command in commands], atomic=atomic)
    wishes = [
        (place, number, wish)
        for place, wish in queued.items()
        if (number := orgs[org_of(commands[place].account)]) is not None
    ]
    apart = {place for place, _, _ in wishes}
    direct = [place for place in range(len(commands)) if place not in apart]
    items = [(command.account, command) for command in commands]
    outcomes = await batch_by_org(call, orgs, items, atomic=atomic, only=direct)
    taken = await pool_admission.take_turns(call, wishes, before=len(direct))
    call.replayed = call.replayed and all(replay for _, replay in taken)
    by_place: dict[int, Told] = dict(zip(direct, outcomes, strict=True))
    by_place |= {place: each for (place, _, _), (each, _) in zip(wishes, taken, strict=True)}
    return [by_place[place] for place in range(len(commands))]


async def _reserve_together(
    call: ApiRequest[ReserveBatch, Atomic], commands: list[Reserve]
) -> list[Told]:
    """A batch into a pool that is all or nothing: a gang."""
    org_id = await org_number(call, commands[0].account)
    pairs = zip(call.body.items, commands, strict=True)
    gang = pool_admission.gang_of(
        call, [pool_admission.wish_of(call, item, command) for item, command in pairs]
    )
    await begin(call, [command.account for command in commands], atomic=True)
    told, call.replayed = await pool_admission.take_turn_together(call, org_id, gang)
    for each in told:
        if isinstance(each, Refused):
            raise RefusedError(each)
    return [*told]


async def _reserve_result(
    call: AnyCall, command: Reserve, outcome: Told, position: int, known: Known
) -> ReserveResult:
    if isinstance(outcome, ProblemError):
        problem = problem_of(outcome, call.request_id, index=position)
        return ReserveResult(status=int(outcome.status), problem=problem)
    if isinstance(outcome, QueueAnswer):
        return ReserveResult(status=int(HTTPStatus.ACCEPTED), queue=outcome)
    if isinstance(outcome, Refused):
        await long_step()  # what all gates say takes a while to write
        outcome = await name_statement(call, outcome, known)
        problem = refusal_problem(outcome, call.request_id, index=position)
        return ReserveResult(status=int(status_of(outcome.reason)), problem=problem)
    org_id = await org_number(call, command.account)
    if isinstance(outcome, Queued):
        told: list[Told]
        try:
            told = [*await pool_admission.resolve(call, org_id, outcome, position)]
        except ProblemError as error:
            if not pool_admission.is_answer(error):
                raise
            told = [error]
        return await _reserve_result(call, command, told[0], position, known)
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
        other_answers=((202, QueueAnswer),),
        needs_key=True,
        reasons=(*RESERVING, "queue_full", "queue_unknown"),
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
        reasons=(*RESERVING, "queue_full", "queue_unknown", "batch_incomplete"),
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
                (),
            ),
        )
    ),
]
