"""Handlers of the queue: who waits, where and why; waiting for news; giving up."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import AnyCall, account_filter, org_number
from gpucredits.api.http.submit import act_of
from gpucredits.core import ids
from gpucredits.core.fairshare.decisions import WaitDecision, WaitReason, sentence
from gpucredits.core.gpu_type import parse_pool
from gpucredits.core.reasons import Refused
from gpucredits.core.wording import count
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.dispatch.queue import (
    QueuedRequest,
    TicketFilter,
    answer_of,
    by_the_clock,
    has_ended,
)
from gpucredits.store.dispatch.queue import QueueState
from gpucredits.wire.queue import QueueAnswer, QueuePage, QueueStateName
from gpucredits.wire.scalars import AccountPath, Name, Region, format_end, format_instant

WAIT_SECONDS_MAX: Final = 60
NO_QUEUE = ("queue_unknown",)

_STATES: dict[QueueState, QueueStateName] = {
    QueueState.WAITING: "waiting",
    QueueState.ADMITTING: "waiting",
    QueueState.ADMITTED: "admitted",
    QueueState.CANCELED: "canceled",
    QueueState.EXPIRED: "expired",
    QueueState.REFUSED: "refused",
}


class QueueQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which requests to list; a pool is a GPU type and a region, such as h100/default.

    With a ``region``, ``pool`` is the GPU type alone.
    """

    account: AccountPath | None = None
    pool: Name | None = None
    region: Region | None = None
    state: QueueStateName | None = None


class WaitQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for the request to be admitted, or to end in another way."""

    wait_seconds: Annotated[int, Meta(ge=0, le=WAIT_SECONDS_MAX)] = 0


async def get_queue(call: ApiRequest[None, QueueQuery]) -> QueuePage:
    """Requests that wait or waited, the latest first: of the caller's scope."""
    query = call.query
    account = account_filter(call, query.account)
    if query.region is not None and query.pool is None:
        raise invalid("region", "must be given with a pool, which is then the GPU type alone")
    org_id = await org_number(call, account) if account else None
    wanted = query.state
    states = () if wanted is None else tuple(s for s in QueueState if _STATES[s] == wanted)
    tickets = await call.services.line.page(
        TicketFilter(
            org_id=org_id,
            account=account,
            pool=None if query.pool is None else _pool_name(query.pool, query.region),
            states=states,
            before=number_cursor(query, LAST),
            limit=query.limit + 1,
        )
    )
    tickets, following = page(tickets, query, lambda row: row.queue_id)
    return QueuePage(queue=[ticket_to_wire(each) for each in tickets], next_cursor=following)


async def get_queued(call: ApiRequest[None, WaitQuery]) -> QueueAnswer:
    """One request as it stands, or once it no longer waits, if that is within ``wait_seconds``."""
    ticket = await _visible(call)
    if call.query.wait_seconds and not has_ended(ticket):
        key = (ticket.org_id, ticket.queue_id)
        seen = await call.services.line.wait(key, has_ended, timeout_s=call.query.wait_seconds)
        ticket = seen or ticket
    return ticket_to_wire(ticket)


async def post_queue_cancel(call: ApiRequest[None, NoQuery]) -> QueueAnswer:
    """Wait no more; with a member of a gang the whole gang gives up."""
    ticket = await _visible(call)
    key = (ticket.org_id, ticket.queue_id)
    is_closed, call.replayed = await call.services.line.cancel(act_of(call, ticket.org_id), key)
    seen = await call.services.line.wait(key, has_ended, timeout_s=0 if call.dry_run else 10)
    if not is_closed and (seen is None or seen.state != QueueState.CANCELED):
        now = _STATES[QueueState((seen or ticket).state)]
        hint = ": cancel or settle its reservation instead" if now == "admitted" else ""
        raise ProblemError("queue_ended", f"It is {now}, not waiting{hint}.")
    return ticket_to_wire(seen or ticket)


async def _visible(call: AnyCall) -> QueuedRequest:
    """The request in the path, if the caller's scope reaches it."""
    try:
        key = ids.parse_id(ids.QUEUE, call.params["queue"])
    except ValueError:
        key = (-1, 0)
    if key[0] < 2**31:
        ticket = await call.services.line.read(key)
        if ticket is not None and sees(call.principal, ticket.account):
            return ticket
    raise ProblemError("queue_unknown", "There is no such request in the queue.")


def ticket_to_wire(ticket: QueuedRequest) -> QueueAnswer:
    """A request as its owner may see it: nothing in it names anybody else."""
    ticket = by_the_clock(ticket)
    state = _STATES[QueueState(ticket.state)]
    waits = state == "waiting"
    is_admitted = state == "admitted"
    return QueueAnswer(
        queue_id=ids.format_id(ids.QUEUE, ticket.org_id, ticket.queue_id),
        state=state,
        account=ticket.account,
        job_id=ticket.job_id,
        gpu_type=ticket.gpu_type,
        region=ticket.region,
        gpu_count=ticket.gpus,
        admitted_gpus=ticket.granted if is_admitted else None,
        priority=ticket.priority,
        gang=ticket.gang or None,
        gang_size=ticket.gang_size,
        allow_partial=ticket.allow_partial,
        position=ticket.position or None if waits else None,
        waits_for=_waits_for(ticket) if waits else None,
        reason=ticket.reason or None if waits else None,
        sentence=_sentence(ticket),
        estimate=format_instant(ticket.starts_at) if waits and ticket.starts_at else None,
        submitted_at=format_instant(ticket.submitted_at),
        deadline=format_end(ticket.deadline),
        ended_at=format_instant(ticket.ended_at) if ticket.ended_at else None,
        reservation_id=ids.format_id(ids.RESERVATION, ticket.org_id, ticket.reservation_id)
        if ticket.reservation_id
        else None,
    )


def _waits_for(ticket: QueuedRequest) -> str | None:
    """What has to come: another gate's word, the rest of its gang, or capacity."""
    if ticket.held_by or not ticket.reason:
        return ticket.held_by or None
    return "gang" if ticket.reason == WaitReason.GANG_INCOMPLETE else "capacity"


def _sentence(ticket: QueuedRequest) -> str:
    """Why it waits, or how it ended, in words that name no other tenant."""
    state = QueueState(ticket.state)
    if state is QueueState.ADMITTED:
        asked = count(ticket.gpus, "GPU")
        return f"It was admitted with {ticket.granted} of the {asked} that it asked for."
    if not state.is_open:
        said = answer_of(ticket)
        return said.message if isinstance(said, Refused) else ""
    if state is QueueState.ADMITTING:
        return "It has its room and is being admitted."
    if ticket.held_by:
        return f"It waits for {ticket.held_by}: {ticket.held_sentence}"
    if not ticket.reason:
        return "It has just come, and nobody has looked at it yet."
    behind = ticket.behind
    if ticket.reason != WaitReason.OTHER_GATE and not _is_own(ticket, behind):
        behind = "another request"
    text = sentence(
        WaitDecision(
            "",
            ticket.account,
            ticket.position,
            WaitReason(ticket.reason),
            ticket.resource,
            ticket.needed,
            ticket.available,
            behind,
        )
    )
    return f"{text[0].upper()}{text[1:]}"


def _is_own(ticket: QueuedRequest, behind: str) -> bool:
    try:
        return ids.parse_id(ids.QUEUE, behind)[0] == ticket.org_id
    except ValueError:
        return False


def _pool_name(text: str, region: str | None) -> tuple[str, str]:
    try:
        return parse_pool(text, region)
    except ValueError as error:
        raise invalid("pool", str(error)) from error


ROUTES = [
    Route(
        method="GET",
        path="/v1/queue",
        summary="Requests that wait or waited for their turn",
        handler=get_queue,
        permission=Permission.READ,
        query=QueueQuery,
        answer=QueuePage,
        reasons=NO_ACCOUNT,
        tag="queue",
    ),
    Route(
        method="GET",
        path="/v1/queue/{queue}",
        summary="One request, at once or when it no longer waits",
        handler=get_queued,
        permission=Permission.READ,
        query=WaitQuery,
        answer=QueueAnswer,
        reasons=NO_QUEUE,
        tag="queue",
        longer_s=float(WAIT_SECONDS_MAX),
    ),
    Route(
        method="POST",
        path="/v1/queue/{queue}:cancel",
        summary="Wait no more",
        handler=post_queue_cancel,
        permission=Permission.RESERVE,
        answer=QueueAnswer,
        needs_key=True,
        reasons=(*NO_QUEUE, "queue_ended"),
        tag="queue",
    ),
]
