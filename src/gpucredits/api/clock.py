"""Handlers of the clocks of orgs: listing clocks that are ahead of the database's, and repairs."""

from __future__ import annotations

from typing import Final

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import invalid
from gpucredits.api.http.paging import PageQuery, page, path_cursor
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import act_of, org_number, visible
from gpucredits.core.bounds import SECOND_US
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reads.clock import read_clock
from gpucredits.service.write.clock_repairs import orgs_ahead, repair_clock
from gpucredits.wire.ledger.clock import (
    ClockRepairAnswer,
    ClockRepairRequest,
    OrgClock,
    OrgClockPage,
)
from gpucredits.wire.scalars import format_instant

LONGER_S: Final = 60.0  # a large org has many leases


route = Routes("system")


@route("GET /v1/clock/orgs", Permission.REPAIR_CLOCK, client="org_clock_page()")
async def get_org_clocks(call: ApiRequest[None, PageQuery]) -> OrgClockPage:
    """List orgs whose clock is ahead of the database's and needs a repair, by path."""
    query = call.query
    run = call.services.run
    found = await run(orgs_ahead, after=path_cursor(query), limit=query.limit + 1)
    rows, following = page(found, query, lambda row: row.path)
    clock_check = call.services.ledger.cache.clock_check
    return OrgClockPage(
        now=format_instant(await run(read_clock)),
        off_seconds=clock_check.off_us / SECOND_US,
        jumps=clock_check.jumps,
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


@route(
    "POST /v1/clock/repairs",
    Permission.REPAIR_CLOCK,
    reasons=NO_ACCOUNT,
    longer_s=LONGER_S,
    client="repair_clock(org)",
)
async def post_clock_repair(call: ApiRequest[ClockRepairRequest, NoQuery]) -> ClockRepairAnswer:
    """Bring an org's clock back to the present, with everything that was stamped later."""
    org = visible(call, call.body.org)
    if "/" in org:
        raise invalid("org", "must be an org, such as acme: its projects have its clock")
    if not call.body.reason.strip():
        raise invalid("reason", "must not be empty: the audit log keeps it")
    answer, call.replayed = await call.services.run(
        repair_clock,
        call.services.ledger.cache.clock_check,
        act_of(call, await org_number(call, org)),
        str(call.body.reason),
    )
    return answer
