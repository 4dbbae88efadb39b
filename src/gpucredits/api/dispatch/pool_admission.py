"""The way into a pool: which reserves have to wait for a turn, and what they are told.

Owns: sending a reserve to the queue, waiting for the cycle that decides about it, and keys that
were used for it before.
Must not: decide who is let in (the dispatcher does).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeGuard

from gpucredits.api.dispatch.queue import ticket_to_wire
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.scope import AnyCall, require
from gpucredits.api.http.submit import act_of, item_key_of
from gpucredits.core.command import Reserve
from gpucredits.core.outcome import Outcome, Queued
from gpucredits.service.access.permissions import Permission
from gpucredits.service.dispatch.dry_runs import never_admitted, rehearsed, rehearsed_together
from gpucredits.service.dispatch.pools import GpuPool
from gpucredits.service.dispatch.queue import (
    DeadlinePassed,
    QueuedRequest,
    QueueFull,
    QueueOptions,
    answer_of,
    has_ended,
    was_throttled,
)
from gpucredits.service.write.acts import Act
from gpucredits.service.write.errors import complete
from gpucredits.store.dispatch.pools import NO_POOL
from gpucredits.wire.queue import QueueAnswer
from gpucredits.wire.reservation import ReserveRequest
from gpucredits.wire.scalars import format_instant

ANSWER_WITHIN_S: Final = 3.0  # how long a request that does not wait is kept waiting for a cycle
LET_IN_WITHIN_S: Final = 10.0  # and how long for the ledger, once it has its room
FIRST_NEWS_WITHIN_S: Final = 2.0  # how long one that waits is kept for its first place


def pool_of(call: AnyCall, request: ReserveRequest) -> GpuPool | None:
    """The pool that a reserve is for, if there is one."""
    return call.services.gpu_pools.find(request.gpu_type, request.region)


def permitted(call: AnyCall, request: ReserveRequest) -> None:
    """Refuse a job that is never to be stopped, unless the system's staff asks for it.

    A pool may be set, or get a capacity, while the job runs: so it makes no difference whether
    there is one now.
    """
    if not request.preemptible:
        why = (
            "Only the system's own staff may ask that a job is never stopped for others: leave "
            "preemptible out."
        )
        require(call.principal, Permission.KEEP_RUNNING, why)


def needs_turn(call: AnyCall, request: ReserveRequest) -> bool:
    """Whether a reserve goes through the queue: into a pool with a capacity, or willing to wait."""
    if request.wait or request.allow_partial:
        return True
    pool = pool_of(call, request)
    return pool is not None and pool.gates


def wish_of(call: AnyCall, request: ReserveRequest, command: Reserve) -> QueueOptions:
    """What the queue is told; refuses what makes no sense."""
    if request.gang is None and (request.gang_size or 1) > 1:
        raise invalid("gang", "must be named for a gang_size of more than 1")
    if request.gang is not None and request.allow_partial:
        raise invalid("allow_partial", "is not possible for a gang, which is all or nothing")
    if request.gang is not None and request.gang_size is None:
        raise invalid("gang_size", "must be given with a gang")
    if request.deadline is not None and not request.wait:
        raise invalid("deadline", "is for requests that wait")
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
    call: AnyCall, org_id: int, wish: QueueOptions, *, position: int | None = None
) -> tuple[Outcome | QueueAnswer, bool]:
    """Send a reserve to the queue: its lease or refusal, or its place; and whether it is a replay.

    ``position``: its place in a batch, which is part of its key.
    """
    if call.dry_run:
        with naming_deadlines():
            await call.services.line.check_deadlines([wish])
        return await rehearsed(call.services, org_id, wish), False
    [answer], is_replay = await _join(call, org_id, [wish], position)
    return answer, is_replay


async def take_turns(
    call: AnyCall, wishes: Sequence[tuple[int, int, QueueOptions]], *, before: int
) -> list[tuple[Outcome | QueueAnswer | ProblemError, bool]]:
    """Send reserves of a batch, as (place in it, org, wish), to the queue on their own.

    One that cannot wait there is told so in its place. ``before``: how many of the batch's other
    items are decided, should some of these not be.
    """
    if call.dry_run:
        return [await take_turn(call, org_id, wish) for _, org_id, wish in wishes]
    turns = (take_turn(call, org_id, wish, position=place) for place, org_id, wish in wishes)
    told = await asyncio.gather(*turns, return_exceptions=True)
    return complete([(each, False) if is_answer(each) else each for each in told], before=before)


def is_answer(told: object) -> TypeGuard[ProblemError]:
    """Whether a problem is an answer to one item, and not the lack of one."""
    return isinstance(told, ProblemError) and told.status < HTTPStatus.INTERNAL_SERVER_ERROR


def gang_of(call: AnyCall, wishes: Sequence[QueueOptions]) -> list[QueueOptions]:
    """A batch that is all or nothing as one gang; refuses what makes no sense."""
    first = wishes[0]
    if len({(wish.pool_id, wish.reserve.account, wish.is_patient) for wish in wishes}) > 1:
        text = "must be of one account and one pool, and all wait or none, in an atomic batch"
        raise invalid("items", text)
    if any(wish.allow_partial for wish in wishes):
        raise invalid(
            "allow_partial", "is not possible in an atomic batch, which is all or nothing"
        )
    mark = hashlib.sha256(f"{call.key}".encode()).hexdigest()[:12]
    gang = f"{first.gang or 'batch'}#{mark}"
    return [replace(wish, gang=gang, gang_size=len(wishes)) for wish in wishes]


async def take_turn_together(
    call: AnyCall, org_id: int, gang: Sequence[QueueOptions]
) -> tuple[list[Outcome | QueueAnswer], bool]:
    """Send a batch that is all or nothing to the queue."""
    if call.dry_run:
        return [*await rehearsed_together(call.services, org_id, gang)], False
    return await _join(call, org_id, gang, 0)


async def resolve(
    call: AnyCall, org_id: int, queued: Queued, position: int | None = None
) -> list[Outcome | QueueAnswer]:
    """What became of requests that this call, or an earlier one, put into the queue.

    To be asked to slow down is no answer: then the key may be used again for the same.
    """
    tickets = [await _ended(call, (org_id, each)) for each in (queued.queue_id, *queued.others)]
    if any(was_throttled(ticket) for ticket in tickets):
        await call.services.line.forget(_act(call, org_id, position), queued)
    return [_told(ticket) for ticket in tickets]


async def _join(
    call: AnyCall, org_id: int, wishes: Sequence[QueueOptions], position: int | None
) -> tuple[list[Outcome | QueueAnswer], bool]:
    act = _act(call, org_id, position)
    waits = wishes[0].is_patient
    refused = await never_admitted(call.services, org_id, wishes) if waits else None
    try:
        with naming_deadlines():
            outcome, is_replay = await call.services.line.join(act, wishes, refused=refused)
    except QueueFull as full:
        raise ProblemError(
            "queue_full",
            "As many requests of this org as may wait in this pool are waiting already.",
            headers={"retry-after": "5"},
        ) from full
    if not isinstance(outcome, Queued):  # refused, or the key was used before there was a pool
        return [outcome] * len(wishes), is_replay
    return await resolve(call, org_id, outcome, position), is_replay


@contextmanager
def naming_deadlines() -> Iterator[None]:
    """Turn a deadline that has passed into a problem with its field."""
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
    line = call.services.line
    ticket = await line.wait(key, _has_news, timeout_s=FIRST_NEWS_WITHIN_S)
    if ticket is not None and not ticket.is_patient:
        ticket = await line.wait(key, has_ended, timeout_s=ANSWER_WITHIN_S)
        if ticket is not None and not has_ended(ticket):
            await line.give_up(key)
            ticket = await line.wait(key, has_ended, timeout_s=LET_IN_WITHIN_S)
    if ticket is None:
        raise ProblemError("queue_unknown", "This request is no longer known.")
    return ticket


def _told(ticket: QueuedRequest) -> Outcome | QueueAnswer:
    """What is said of a request: the end of one that does not wait, the place of one that does."""
    if ticket.is_patient:
        return ticket_to_wire(ticket)
    outcome = answer_of(ticket)
    if outcome is None:
        raise ProblemError(
            "timeout",
            "It has its room and is still being admitted. Send the same request with the same key "
            "again.",
            headers={"retry-after": "1"},
        )
    return outcome


def _has_news(ticket: QueuedRequest) -> bool:
    return has_ended(ticket) or bool(ticket.reason or ticket.held_by)
