"""Handlers of the queue: listing requests, waiting for news, and canceling."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from gpucredits.api.dispatch.pool_admission import STATES, queued_to_wire
from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.paging import LAST, TreePageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import (
    AnyCall,
    account_filter,
    act_of,
    org_number,
    require_here,
    wrong_node,
)
from gpucredits.core import ids
from gpucredits.core.gpu_type import parse_pool
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.dispatch.queue import (
    QueuedRequest,
    QueueFilter,
    QueueState,
    has_ended,
)
from gpucredits.wire.dispatch.queue import QueueAnswer, QueuePage, QueueStateName
from gpucredits.wire.documented import REGION, doc
from gpucredits.wire.scalars import (
    Name,
    Region,
)

WAIT_SECONDS_MAX: Final = 60
NO_QUEUE = ("queue_unknown",)


route = Routes("queue")


class QueueQuery(TreePageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which requests to list; a pool is a GPU type and a region, such as h100/default.

    With a ``region``, ``pool`` is the GPU type alone.
    """

    pool: Annotated[Name | None, doc("Only requests for this pool, such as h100/default.")] = None
    region: Annotated[Region | None, REGION] = None
    state: Annotated[QueueStateName | None, doc("Only requests in this state.")] = None


class WaitQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for the request to be admitted, or to end in another way."""

    wait_seconds: Annotated[
        int,
        Meta(ge=0, le=WAIT_SECONDS_MAX),
        doc("How long to wait for an answer; 0 answers at once."),
    ] = 0


@route("GET /v1/queue", Permission.READ, reasons=NO_ACCOUNT, client="queue_page()")
async def get_queue(call: ApiRequest[None, QueueQuery]) -> QueuePage:
    """List requests that wait or waited in a queue, the latest first.

    ``pool`` is such as h100 or h100/eu. With a ``region``, ``pool`` is the GPU type alone.
    """
    query = call.query
    account = account_filter(call, query.account)
    if query.region is not None and query.pool is None:
        raise invalid("region", "must be given with a pool, which is then the GPU type alone")
    org_id = await org_number(call, account) if account else None
    wanted = query.state
    states = () if wanted is None else tuple(s for s in QueueState if STATES[s] == wanted)
    found = await call.services.queue.page(
        QueueFilter(
            org_id=org_id,
            account=account,
            pool=None if query.pool is None else _pool_name(query.pool, query.region),
            states=states,
            before=number_cursor(query, LAST),
            limit=query.limit + 1,
        )
    )
    found, following = page(found, query, lambda row: row.queue_id)
    return QueuePage(queue=[queued_to_wire(each) for each in found], next_cursor=following)


@route(
    "GET /v1/queue/{queue}",
    Permission.READ_QUEUED,
    reasons=NO_QUEUE,
    longer_s=float(WAIT_SECONDS_MAX),
    client="queued(queue_id)",
)
async def get_queued(call: ApiRequest[None, WaitQuery]) -> QueueAnswer:
    """Get one queued request, at once or when it no longer waits.

    The answer comes within ``wait_seconds``.
    """
    request = await _visible(call)
    if call.query.wait_seconds and not has_ended(request):
        key = request.key
        seen = await call.services.queue.wait(key, has_ended, timeout_s=call.query.wait_seconds)
        request = seen or request
    return queued_to_wire(request)


@route(
    "POST /v1/queue/{queue}:cancel",
    Permission.RESERVE,
    reasons=(*NO_QUEUE, "queue_ended"),
    client="cancel_queued(queue_id)",
)
async def post_queue_cancel(call: ApiRequest[None, NoQuery]) -> QueueAnswer:
    """Cancel a queued request.

    A member of a gang takes the whole gang with it, so a caller of one node cancels no member.
    """
    request = await _visible(call)
    if call.principal.node and request.gang:
        why = f"{call.params['queue']} belongs to gang {request.gang}, which a cancel ends whole"
        raise wrong_node(why, call.principal)
    key = request.key
    is_closed, call.replayed = await call.services.queue.cancel(act_of(call, request.org_id), key)
    seen = await call.services.queue.wait(key, has_ended, timeout_s=0 if call.dry_run else 10)
    if not is_closed and (seen is None or seen.state != QueueState.CANCELED):
        now = STATES[QueueState((seen or request).state)]
        hint = ": cancel or settle its reservation instead" if now == "admitted" else ""
        raise ProblemError("queue_ended", f"It is {now}, not waiting{hint}.")
    return queued_to_wire(seen or request)


async def _visible(call: AnyCall) -> QueuedRequest:
    """The request in the path, if the caller's scope reaches it and it is for the caller's node."""
    try:
        key = ids.parse_id(ids.QUEUE, call.params["queue"])
    except ValueError:
        key = (-1, 0)
    if key[0] < 2**31:
        request = await call.services.queue.read(key)
        if request is not None and sees(call.principal, request.account):
            require_here(call, request.reserve.node, "the node of the request")
            return request
    raise ProblemError("queue_unknown", "There is no such request in the queue.")


def _pool_name(text: str, region: str | None) -> tuple[str, str]:
    try:
        return parse_pool(text, region)
    except ValueError as error:
        raise invalid("pool", str(error)) from error
