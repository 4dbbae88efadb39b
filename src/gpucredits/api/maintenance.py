"""Handlers of planned stops: announce a stop, end it, and list leases that end too early."""

from __future__ import annotations

from typing import Final

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.paging import PageQuery, numbered_cursor, numbered_place, page
from gpucredits.api.http.scope import AnyCall, act_of
from gpucredits.api.system import SYSTEM
from gpucredits.service.access.permissions import Permission
from gpucredits.service.write.maintenance import FIRST, change, read_state, state_to_wire
from gpucredits.wire.outages.maintenance import MaintenanceAnswer, MaintenanceRequest

LONGER_S: Final = 30.0  # all live leases are looked at


route = Routes("system")


@route(
    "POST /v1/maintenance",
    Permission.RUN_MAINTENANCE,
    longer_s=LONGER_S,
    client="announce_maintenance(for_seconds)",
)
async def post_maintenance(
    call: ApiRequest[MaintenanceRequest, NoQuery],
) -> MaintenanceAnswer:
    """Announce a planned stop: reports extend leases to its end, as far as payers can fund it.

    A new announcement ends the one before.
    """
    return await _change(call, call.body.for_seconds * 1_000, str(call.body.reason or ""))


@route(
    "POST /v1/maintenance:end",
    Permission.RUN_MAINTENANCE,
    longer_s=LONGER_S,
    client="end_maintenance()",
)
async def post_maintenance_end(call: ApiRequest[None, NoQuery]) -> MaintenanceAnswer:
    """End a maintenance early: later reports renew leases for their usual time again."""
    return await _change(call, 0, "")


@route(
    "GET /v1/maintenance",
    Permission.RUN_MAINTENANCE,
    longer_s=LONGER_S,
    client="maintenance()",
)
async def get_maintenance(call: ApiRequest[None, PageQuery]) -> MaintenanceAnswer:
    """Get the announced maintenance, and the leases that cannot be extended to its end."""
    query = call.query
    after = numbered_cursor(query, FIRST)
    state = await call.services.run(read_state, after, query.limit + 1)
    shown, following = page(
        state.short, query, lambda row: numbered_place(row.org_id, row.reservation_id)
    )
    answer = state_to_wire(state._replace(short=shown))
    answer.next_cursor = following
    return answer


async def _change(call: AnyCall, for_ms: int, reason: str) -> MaintenanceAnswer:
    run = call.services.run
    answer, call.replayed = await run(change, act_of(call, SYSTEM), for_ms, reason)
    await run(call.services.ledger.cache.life.hear)
    return answer
