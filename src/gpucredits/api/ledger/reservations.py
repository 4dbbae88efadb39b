"""Handlers of leases: reserve, extend, settle, cancel, and their corrections."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from gpucredits.api.dispatch import pool_admission
from gpucredits.api.http.batch import Atomic, batch_by_org, begin
from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import (
    ProblemError,
    RefusedError,
    invalid,
    problem_of,
    refusal_problem,
    status_of,
)
from gpucredits.api.http.overdue import Known, name_statement
from gpucredits.api.http.reasons import NO_LEASE, RESERVING
from gpucredits.api.http.scope import (
    AnyCall,
    accepted,
    lease_param,
    org_number,
    outcome_of,
    require,
    require_here,
    submit,
    visible,
)
from gpucredits.core.account import org_of
from gpucredits.core.command import Cancel, Reserve
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed, Outcome, Queued, Reserved
from gpucredits.core.reasons import Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.service.access.tokens import TokenLease, issue
from gpucredits.service.dispatch.queue import QueueOptions
from gpucredits.service.write.batch import long_step
from gpucredits.service.write.errors import complete
from gpucredits.service.write.heartbeats import beaten_to_wire
from gpucredits.wire.dispatch.queue import QueueAnswer
from gpucredits.wire.ledger.closing import (
    CancelRequest,
    ClosedAnswer,
    SettleRequest,
    closed_to_wire,
    settle_from_wire,
)
from gpucredits.wire.ledger.heartbeat import BeatAnswer, ExtendRequest
from gpucredits.wire.ledger.reservation import (
    ReservationAnswer,
    ReserveBatch,
    ReserveRequest,
    ReserveResult,
    ReserveResults,
    reserve_from_wire,
    reserved_to_wire,
)

Told = Outcome | QueueAnswer | ProblemError  # what became of an item of a batch


route = Routes("reservations")


@route(
    "POST /v1/reservations",
    Permission.RESERVE,
    reasons=(*RESERVING, "queue_full", "queue_unknown"),
    status=201,
    other_answers=((202, QueueAnswer),),
    client="reserve(account, **ReserveFields); enqueue(account, wait=True, **EnqueueFields)",
)
async def post_reservation(
    call: ApiRequest[ReserveRequest, NoQuery],
) -> ReservationAnswer | QueueAnswer:
    """Ask for a lease: GPUs of one type for a job on one node.

    The first window's credits are held. ``exhaustion`` says what becomes of the job when the lease
    can no longer be renewed in full. With ``wait`` (``enqueue`` in the client) the request waits
    for capacity, credits or quota.
    """
    account = visible(call, call.body.account)
    require_here(call, call.body.node)
    org_id = await org_number(call, account)
    permitted(call, call.body)
    command = reserve_from_wire(call.body, call.principal.scope)
    told: Outcome | QueueAnswer
    if needs_turn(call, call.body):
        options = pool_admission.options_of(call, call.body, command)
        told, call.replayed = await pool_admission.take_turn(call, org_id, options)
    else:
        told = await outcome_of(call, org_id, command)
    if isinstance(told, Queued):
        [told] = await pool_admission.resolve(call, org_id, told)
    if isinstance(told, QueueAnswer):
        call.status = int(HTTPStatus.ACCEPTED)
        return told
    return await _reserved(call, call.body, org_id, accepted(told, Reserved))


@route(
    "POST /v1/reservations:batch",
    Permission.RESERVE,
    reasons=(*RESERVING, "queue_full", "queue_unknown", "batch_incomplete"),
    client="reserve_all(items)",
)
async def post_reservation_batch(call: ApiRequest[ReserveBatch, Atomic]) -> ReserveResults:
    """Ask for many leases, each on its own or all or nothing.

    Each item has the fields of a single reserve. ``atomic``: all or nothing.
    """
    commands = [reserve_from_wire(item, call.principal.scope) for item in call.body.items]
    for item, command in zip(call.body.items, commands, strict=True):
        visible(call, command.account)
        require_here(call, item.node)
        permitted(call, item)
    atomic = call.body.atomic or call.query.atomic
    queued = {
        place: pool_admission.options_of(call, item, command)
        for place, (item, command) in enumerate(zip(call.body.items, commands, strict=True))
        if needs_turn(call, item)
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


@route(
    "POST /v1/reservations/{reservation}:extend",
    Permission.BEAT,
    reasons=NO_LEASE,
    needs_key=False,
    client="extend(reservation_id)",
)
async def post_extend(call: ApiRequest[ExtendRequest, NoQuery]) -> BeatAnswer:
    """Send a heartbeat for one lease: settle what was used and renew.

    The seq makes the heartbeat safe to repeat.
    """
    org_id, number = await lease_param(call)
    command = Beat(number, call.body.seq, call.body.used_ms)
    outcome = await submit(call, org_id, command, BeatResult)
    return beaten_to_wire(call.params["reservation"], outcome)


@route(
    "POST /v1/reservations/{reservation}:settle",
    Permission.CLOSE_LEASE,
    reasons=(*NO_LEASE, "reservation_ended"),
    is_body_optional=True,
    client="settle(reservation_id)",
)
async def post_settle(call: ApiRequest[SettleRequest, NoQuery]) -> ClosedAnswer:
    """End a job: settle what was used, release the rest.

    Without ``used_ms`` the last accepted use stands.
    """
    org_id, number = await lease_param(call)
    outcome = await submit(call, org_id, settle_from_wire(number, call.body), Closed)
    call.services.gpu_pools.room_came_free()
    return closed_to_wire(call.params["reservation"], outcome)


@route(
    "POST /v1/reservations/{reservation}:cancel",
    Permission.CLOSE_LEASE,
    reasons=(*NO_LEASE, "reservation_ended", "reservation_started"),
    is_body_optional=True,
    client="cancel(reservation_id)",
)
async def post_cancel(call: ApiRequest[CancelRequest, NoQuery]) -> ClosedAnswer:
    """Release the hold of a job that never started."""
    org_id, number = await lease_param(call)
    outcome = await submit(call, org_id, Cancel(reservation_id=number), Closed)
    call.services.gpu_pools.room_came_free()
    return closed_to_wire(call.params["reservation"], outcome)


async def _reserve_all(
    call: ApiRequest[ReserveBatch, Atomic],
    commands: list[Reserve],
    queued: Mapping[int, QueueOptions],
    *,
    atomic: bool,
) -> list[Told]:
    """A batch whose items stand alone, or stay out of pools; some may go through the queue."""
    orgs = await begin(call, [command.account for command in commands], atomic=atomic)
    requests = [
        (place, number, options)
        for place, options in queued.items()
        if (number := orgs[org_of(commands[place].account)]) is not None
    ]
    apart = {place for place, _, _ in requests}
    direct = [place for place in range(len(commands)) if place not in apart]
    items = [(command.account, command) for command in commands]
    outcomes = await batch_by_org(call, orgs, items, atomic=atomic, only=direct)
    taken = await pool_admission.take_turns(call, requests, before=len(direct))
    call.replayed = call.replayed and all(replay for _, replay in taken)
    by_place: dict[int, Told] = dict(zip(direct, outcomes, strict=True))
    by_place |= {place: each for (place, _, _), (each, _) in zip(requests, taken, strict=True)}
    return [by_place[place] for place in range(len(commands))]


async def _reserve_together(
    call: ApiRequest[ReserveBatch, Atomic], commands: list[Reserve]
) -> list[Told]:
    """A batch into a pool that is all or nothing: a gang."""
    org_id = await org_number(call, commands[0].account)
    pairs = zip(call.body.items, commands, strict=True)
    gang = pool_admission.gang_of(
        call, [pool_admission.options_of(call, item, command) for item, command in pairs]
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
    asked = call.body.items[position]
    lease = await _reserved(call, asked, org_id, accepted(outcome, Reserved))
    return ReserveResult(status=int(HTTPStatus.CREATED), reservation=lease)


def permitted(call: AnyCall, request: ReserveRequest) -> None:
    """Refuse contradictions, and a job that is never to be stopped unless the system's staff asks.

    A pool may be set, or get a capacity, while the job runs: so it makes no difference whether
    there is one now.
    """
    refuse_contradictions(request)
    if not request.preemptible:
        why = (
            "Only the system's own staff may ask that a job is never stopped for others: leave "
            "preemptible out."
        )
        require(call.principal, Permission.KEEP_RUNNING, why)


def refuse_contradictions(request: ReserveRequest) -> None:
    """Refuse options of the queue that contradict each other, pool or no pool."""
    if request.gang is None and (request.gang_size or 1) > 1:
        raise invalid("gang", "must be named for a gang_size of more than 1")
    if request.gang is not None and request.allow_partial:
        raise invalid("allow_partial", "is not possible for a gang, which is all or nothing")
    if request.gang is not None and request.gang_size is None:
        raise invalid("gang_size", "must be given with a gang")
    if request.deadline is not None and not request.wait:
        raise invalid("deadline", "is for requests that wait")


def needs_turn(call: AnyCall, request: ReserveRequest) -> bool:
    """Whether a reserve goes through the queue: into a pool with a capacity, or willing to wait."""
    if request.wait or request.allow_partial:
        return True
    pool = call.services.gpu_pools.find(request.gpu_type, request.region)
    return pool is not None and pool.gates


async def _reserved(
    call: AnyCall, asked: ReserveRequest, org_id: int, outcome: Reserved
) -> ReservationAnswer:
    """The lease as it is shown, with a token if one was asked for; a replay gets a new one."""
    answer = reserved_to_wire(org_id, outcome)
    if asked.token and not call.dry_run and answer.expires_in_ms:
        lease = outcome.reservation
        now = lease.expires_at - outcome.expires_in_ms * 1_000
        await long_step()  # signing takes a while
        of = TokenLease(org_id, lease, outcome.account, now)
        answer.token = (await issue(call.services.signing, of)).token
    return answer
