"""Handlers of clocks of orgs: which stand ahead of the database's, and their repair."""

from __future__ import annotations

from typing import Final

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import invalid
from gpucredits.api.paging import PageQuery, page, path_cursor
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import org_number, visible
from gpucredits.api.submit import act_of
from gpucredits.core.bounds import SECOND_US
from gpucredits.service.access import Permission
from gpucredits.service.clock_repairs import orgs_ahead, repair_clock
from gpucredits.store.clock import read_clock
from gpucredits.wire.clock import ClockRepairAnswer, ClockRepairRequest, OrgClock, OrgClockPage
from gpucredits.wire.scalars import format_instant

LONGER_S: Final = 60.0  # a large org has many leases


async def get_org_clocks(call: Call[None, PageQuery]) -> OrgClockPage:
    """Orgs whose clock is ahead of the database's and needs a repair, by path."""
    query = call.query
    pool = call.services.pool
    found = await orgs_ahead(pool, after=path_cursor(query), limit=query.limit + 1)
    rows, following = page(found, query, lambda row: row.path)
    steadiness = call.services.ledger.funnel.shelf.steadiness
    return OrgClockPage(
        now=format_instant(await read_clock(pool)),
        off_seconds=steadiness.off_us / SECOND_US,
        jumps=steadiness.jumps,
        orgs=[
            OrgClock(
                org=row.path,
                clock=format_instant(row.clock),
                ahead_seconds=(row.clock - row.now) // SECOND_US,
            )
            for row in rows
        ],
        next_cursor=following,
    )


async def post_clock_repair(call: Call[ClockRepairRequest, NoQuery]) -> ClockRepairAnswer:
    """Bring an org's clock back to the present, with everything that was stamped ahead of it."""
    org = visible(call, call.body.org)
    if "/" in org:
        raise invalid("org", "must be an org, such as acme: its projects have its clock")
    if not call.body.reason.strip():
        raise invalid("reason", "must not be empty: the audit log keeps it")
    answer, call.replayed = await repair_clock(
        call.services.pool,
        call.services.ledger.funnel.shelf.steadiness,
        act_of(call, await org_number(call, org)),
        str(call.body.reason),
        actor=call.actor,
        request_id=call.request_id,
    )
    return answer


ROUTES = [
    Route(
        method="GET",
        path="/v1/clock/orgs",
        summary="Orgs whose clock is ahead of the database's",
        handler=get_org_clocks,
        permission=Permission.REPAIR_CLOCK,
        query=PageQuery,
        answer=OrgClockPage,
        tag="system",
    ),
    Route(
        method="POST",
        path="/v1/clock/repairs",
        summary="Bring an org's clock back to the present",
        handler=post_clock_repair,
        permission=Permission.REPAIR_CLOCK,
        body=ClockRepairRequest,
        answer=ClockRepairAnswer,
        needs_key=True,
        reasons=NO_ACCOUNT,
        longer_s=LONGER_S,
        tag="system",
    ),
]
