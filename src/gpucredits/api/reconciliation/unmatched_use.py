"""Handlers of measured use without a lease: a queue that people work through."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError, invalid
from gpucredits.api.http.paging import (
    TreePageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import NO_ACCOUNT, NO_LEASE
from gpucredits.api.http.scope import AnyCall, act_of, filter_of, number_param
from gpucredits.core import ids
from gpucredits.core.reasons import LEASE_UNKNOWN
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reconciliation.unmatched_use import (
    UNKNOWN,
    UnmatchedFilter,
    UnmatchedRow,
    decide_unmatched,
    list_unmatched,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.reconciliation.comparison import (
    UNMATCHED_STATES,
    DismissRequest,
    MatchRequest,
    UnmatchedAnswer,
    UnmatchedPage,
    UnmatchedState,
)
from gpucredits.wire.scalars import format_instant

route = Routes("reconciliation")


class UnmatchedQuery(TreePageQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose unmatched use to list, and in which state: open unless told otherwise."""

    state: Annotated[UnmatchedState, doc("Only use in this state.")] = "open"


@route(
    "GET /v1/unmatched-use", Permission.READ, reasons=NO_ACCOUNT, client="unmatched_page(account)"
)
async def get_unmatched_use(call: ApiRequest[None, UnmatchedQuery]) -> UnmatchedPage:
    """List measured use that names no lease, or one that does not exist, the newest first.

    Use of a lease that does not exist names no account: keys of its org and of the system see it.
    """
    query = call.query
    which = await filter_of(call, UnmatchedFilter, state=UNMATCHED_STATES.index(query.state))
    if "/" not in which.scope:
        which = replace(which, scope="")
    rows = await call.services.run(list_unmatched, which)
    rows, following = page(rows, query, lambda row: numbered_place(row.org_id, row.unmatched_id))
    return UnmatchedPage(unmatched_use=[to_wire(row) for row in rows], next_cursor=following)


@route(
    "POST /v1/unmatched-use/{unmatched}:match",
    Permission.CORRECT,
    reasons=("unmatched_unknown", *NO_LEASE, "unmatched_state"),
    client="match_use(unmatched_id, reservation_id)",
)
async def post_unmatched_match(call: ApiRequest[MatchRequest, NoQuery]) -> UnmatchedAnswer:
    """Say which lease measured use belongs to; the lease is compared in the next pass."""
    found = number_param(call, "unmatched", ids.UNMATCHED)
    lease = ids.lease_number(call.body.reservation_id)
    if found is None:
        raise RefusedError(UNKNOWN)
    if lease is None or lease[0] != found[0]:
        raise RefusedError(LEASE_UNKNOWN)
    return await _decide(call, found, lease[1], str(call.body.note))


@route(
    "POST /v1/unmatched-use/{unmatched}:dismiss",
    Permission.CORRECT,
    reasons=("unmatched_unknown", "unmatched_state"),
    client="dismiss_use(unmatched_id, note)",
)
async def post_unmatched_dismiss(call: ApiRequest[DismissRequest, NoQuery]) -> UnmatchedAnswer:
    """Say that measured use belongs to no lease, and why."""
    found = number_param(call, "unmatched", ids.UNMATCHED)
    if found is None:
        raise RefusedError(UNKNOWN)
    if not call.body.note.strip():
        raise invalid("note", "must say why")
    return await _decide(call, found, 0, str(call.body.note))


async def _decide(call: AnyCall, found: tuple[int, int], lease: int, note: str) -> UnmatchedAnswer:
    org_id, number = found
    row, call.replayed = await call.services.run(
        decide_unmatched, act_of(call, org_id), number, reservation_id=lease, note=note
    )
    return to_wire(row)


def to_wire(row: UnmatchedRow) -> UnmatchedAnswer:
    """Unmatched use as it is shown."""
    lease = ids.format_id(ids.RESERVATION, row.org_id, row.reservation_id)
    return UnmatchedAnswer(
        unmatched_id=ids.format_id(ids.UNMATCHED, row.org_id, row.unmatched_id),
        account=row.account or None,
        job_id=row.job_id,
        node=row.node,
        state=UNMATCHED_STATES[row.state],
        reservation_id=lease if row.reservation_id else None,
        events=row.events,
        used_ms=row.used_ms,
        first_at=format_instant(row.first_at),
        last_at=format_instant(row.last_at),
        decided_by=row.decided_by or None,
        note=row.note,
    )
