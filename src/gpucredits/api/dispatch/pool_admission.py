"""The way into a pool: sending reserves to the queue, and answering their callers.

Owns: sending a reserve to the queue, waiting for the cycle that decides on it, answers to keys that
were used before, and the view of a queued request for its owner.
Must not: admit a request (the dispatcher does).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeGuard

from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.scope import AnyCall, act_of, item_key_of
from gpucredits.core import ids
from gpucredits.core.command import Reserve
from gpucredits.core.fairshare.decisions import WaitDecision, WaitReason, sentence
from gpucredits.core.money import count, format_gpus
from gpucredits.core.outcome import Outcome, Queued
from gpucredits.core.reasons import Refused
from gpucredits.service.dispatch.dry_runs import never_admitted, rehearsed, rehearsed_together
from gpucredits.service.dispatch.pools import NO_POOL, GpuPool
from gpucredits.service.dispatch.queue import (
    DeadlinePassed,
    QueuedRequest,
    QueueFull,
    QueueOptions,
    QueueState,
    answer_of,
    by_the_clock,
    has_ended,
    was_throttled,
)
from gpucredits.service.write.acts import Act
from gpucredits.service.write.errors import complete
from gpucredits.wire.dispatch.queue import QueueAnswer, QueueStateName
from gpucredits.wire.ledger.reservation import ReserveRequest
from gpucredits.wire.scalars import format_end, format_instant, gpus_to_wire

ANSWER_WITHIN_S: Final = 3.0  # how long a request that does not wait is kept waiting for a cycle
LET_IN_WITHIN_S: Final = 10.0  # and how long for the ledger, once it has its room
FIRST_NEWS_WITHIN_S: Final = 2.0  # how long one that waits is kept for its first place


STATES: dict[QueueState, QueueStateName] = {
    QueueState.WAITING: "waiting",
    QueueState.ADMITTING: "waiting",
    QueueState.ADMITTED: "admitted",
    QueueState.CANCELED: "canceled",
    QueueState.EXPIRED: "expired",
    QueueState.REFUSED: "refused",
}


def pool_of(call: AnyCall, request: ReserveRequest) -> GpuPool | None:
    """The pool that a reserve is for, if there is one."""
    return call.services.gpu_pools.find(request.gpu_type, request.region)


def options_of(call: AnyCall, request: ReserveRequest, command: Reserve) -> QueueOptions:
    """The queue's options from a request."""
    pool = pool_of(call, request)
    resources = request.resources
    return QueueOptions(
        reserve=command,
        pool_id=NO_POOL if pool is None else pool.pool_id,
        cpus=0 if resources is None else resources.cpu,
        memory=0 if resources is None else resources.memory,
        priority=request.priority,
        gang=str(request.gang or ""),
        gang_size=request.gang_size or 1,
        expected_ms=(request.expected_seconds or 0) * 1_000,
        preemptible=request.preemptible,
        is_patient=request.wait,
        allow_partial=request.allow_partial,
        deadline=int(request.deadline or 0),
    )


async def take_turn(
    call: AnyCall, org_id: int, options: QueueOptions, *, position: int | None = None
) -> tuple[Outcome | QueueAnswer, bool]:
    """Send a reserve to the queue: its lease, refusal or place; and whether this is a replay.

    ``position`` is the place of the reserve in a batch, which is part of its key.
    """
    if call.dry_run:
        with naming_deadlines():
            await call.services.queue.check_deadlines([options])
        return await rehearsed(call.services, org_id, options), False
    [answer], is_replay = await _join(call, org_id, [options], position)
    return answer, is_replay


async def take_turns(
    call: AnyCall, requests: Sequence[tuple[int, int, QueueOptions]], *, before: int
) -> list[tuple[Outcome | QueueAnswer | ProblemError, bool]]:
    """Send reserves of a batch, as (place, org, options), to the queue one by one.

    If an item cannot wait, the answer in its place says so. ``before`` is the number of other
    items of the batch that are decided already, for the message if some of these are not.
    """
    if call.dry_run:
        return [await take_turn(call, org_id, options) for _, org_id, options in requests]
    turns = (
        take_turn(call, org_id, options, position=place) for place, org_id, options in requests
    )
    told = await asyncio.gather(*turns, return_exceptions=True)
    return complete([(each, False) if is_answer(each) else each for each in told], before=before)


def is_answer(told: object) -> TypeGuard[ProblemError]:
    """Whether a problem is the answer to one item, and not a failure to answer."""
    return isinstance(told, ProblemError) and told.status < HTTPStatus.INTERNAL_SERVER_ERROR


def gang_of(call: AnyCall, requests: Sequence[QueueOptions]) -> list[QueueOptions]:
    """The options of an all-or-nothing batch, as one gang; refuses contradictions."""
    first = requests[0]
    kinds = {(each.pool_id, each.reserve.account, each.is_patient) for each in requests}
    if len(kinds) > 1:
        text = "must be of one account and one pool, and all wait or none, in an atomic batch"
        raise invalid("items", text)
    if any(options.allow_partial for options in requests):
        raise invalid(
            "allow_partial", "is not possible in an atomic batch, which is all or nothing"
        )
    mark = hashlib.sha256(f"{call.key}".encode()).hexdigest()[:12]
    gang = f"{first.gang or 'batch'}#{mark}"
    return [replace(options, gang=gang, gang_size=len(requests)) for options in requests]


async def take_turn_together(
    call: AnyCall, org_id: int, gang: Sequence[QueueOptions]
) -> tuple[list[Outcome | QueueAnswer], bool]:
    """Send an all-or-nothing batch to the queue as one gang."""
    if call.dry_run:
        return [*await rehearsed_together(call.services, org_id, gang)], False
    return await _join(call, org_id, gang, 0)


async def resolve(
    call: AnyCall, org_id: int, queued: Queued, position: int | None = None
) -> list[Outcome | QueueAnswer]:
    """The outcomes of requests that this call, or an earlier one, put into the queue.

    Throttling is no answer: the key may then be used again for the same requests.
    """
    requests = [await _ended(call, (org_id, each)) for each in (queued.queue_id, *queued.others)]
    if any(was_throttled(request) for request in requests):
        await call.services.queue.forget(_act(call, org_id, position), queued)
    return [_told(request) for request in requests]


async def _join(
    call: AnyCall, org_id: int, requests: Sequence[QueueOptions], position: int | None
) -> tuple[list[Outcome | QueueAnswer], bool]:
    act = _act(call, org_id, position)
    waits = requests[0].is_patient
    refused = await never_admitted(call.services, org_id, requests) if waits else None
    try:
        with naming_deadlines():
            outcome, is_replay = await call.services.queue.join(act, requests, refused=refused)
    except QueueFull as full:
        raise ProblemError(
            "queue_full",
            "This org has as many requests waiting in this pool as it may have.",
            headers={"retry-after": "5"},
        ) from full
    if not isinstance(outcome, Queued):  # refused, or the key was used before there was a pool
        return [outcome] * len(requests), is_replay
    return await resolve(call, org_id, outcome, position), is_replay


@contextmanager
def naming_deadlines() -> Iterator[None]:
    """Turn a deadline that has passed into a problem that names the field."""
    try:
        yield
    except DeadlinePassed as late:
        text = f"must be later than now, which is {format_instant(late.now)}"
        raise invalid("deadline", text) from late


def _act(call: AnyCall, org_id: int, position: int | None) -> Act:
    act = act_of(call, org_id)
    return act if position is None else replace(act, key=item_key_of(call, position))


async def _ended(call: AnyCall, key: tuple[int, int]) -> QueuedRequest:
    """A request that has ended, or that waits and has news."""
    queue = call.services.queue
    request = await queue.wait(key, _has_news, timeout_s=FIRST_NEWS_WITHIN_S)
    if request is not None and not request.is_patient:
        request = await queue.wait(key, has_ended, timeout_s=ANSWER_WITHIN_S)
        if request is not None and not has_ended(request):
            await queue.give_up(key)
            request = await queue.wait(key, has_ended, timeout_s=LET_IN_WITHIN_S)
    if request is None:
        raise ProblemError("queue_unknown", "This request is no longer known.")
    return request


def _told(request: QueuedRequest) -> Outcome | QueueAnswer:
    """The answer for a request: its end, or its place if it waits."""
    if request.is_patient:
        return queued_to_wire(request)
    outcome = answer_of(request)
    if outcome is None:
        raise ProblemError(
            "timeout",
            "It has its room and is still being admitted. Send the same request with the same key "
            "again.",
            headers={"retry-after": "1"},
        )
    return outcome


def _has_news(request: QueuedRequest) -> bool:
    return has_ended(request) or bool(request.reason or request.held_by)


def queued_to_wire(request: QueuedRequest) -> QueueAnswer:
    """A request as its owner may see it; no other tenant is named."""
    request = by_the_clock(request)
    reserve = request.reserve
    state = STATES[QueueState(request.state)]
    waits = state == "waiting"
    is_admitted = state == "admitted"
    return QueueAnswer(
        queue_id=ids.format_id(ids.QUEUE, request.org_id, request.queue_id),
        state=state,
        account=request.account,
        job_id=reserve.job_id,
        gpu_type=reserve.gpu_type,
        region=reserve.region,
        gpu_count=gpus_to_wire(request.milli_gpus),
        admitted_gpus=gpus_to_wire(request.granted) if is_admitted else None,
        priority=request.priority,
        gang=request.gang or None,
        gang_size=request.gang_size,
        allow_partial=request.allow_partial,
        position=request.position or None if waits else None,
        waits_for=_waits_for(request) if waits else None,
        reason=request.reason or None if waits else None,
        sentence=_sentence(request),
        estimate=format_instant(request.starts_at) if waits and request.starts_at else None,
        submitted_at=format_instant(request.submitted_at),
        deadline=format_end(request.deadline),
        ended_at=format_instant(request.ended_at) if request.ended_at else None,
        reservation_id=ids.format_id(ids.RESERVATION, request.org_id, request.reservation_id)
        if request.reservation_id
        else None,
    )


def _waits_for(request: QueuedRequest) -> str | None:
    """What the request waits for: another gate, the rest of its gang, or capacity."""
    if request.held_by or not request.reason:
        return request.held_by or None
    return "gang" if request.reason == WaitReason.GANG_INCOMPLETE else "capacity"


def _sentence(request: QueuedRequest) -> str:
    """Why the request waits, or how it ended; no other tenant is named."""
    state = QueueState(request.state)
    if state is QueueState.ADMITTED:
        asked = count(format_gpus(request.milli_gpus), "GPU")
        granted = format_gpus(request.granted)
        return f"It was admitted with {granted} of the {asked} that it asked for."
    if not state.is_open:
        said = answer_of(request)
        return said.message if isinstance(said, Refused) else ""
    if state is QueueState.ADMITTING:
        return "It has its room and is being admitted."
    if request.held_by:
        return f"It waits for {request.held_by}: {request.held_sentence}"
    if not request.reason:
        return "It has just arrived, and no cycle has looked at it yet."
    behind = request.behind
    if request.reason != WaitReason.OTHER_GATE and not _is_own(request, behind):
        behind = "another request"
    text = sentence(
        WaitDecision(
            "",
            request.account,
            request.position,
            WaitReason(request.reason),
            request.resource,
            request.needed,
            request.available,
            behind,
        )
    )
    return f"{text[0].upper()}{text[1:]}"


def _is_own(request: QueuedRequest, behind: str) -> bool:
    try:
        return ids.parse_id(ids.QUEUE, behind)[0] == request.org_id
    except ValueError:
        return False
