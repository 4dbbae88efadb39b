"""Handlers of corrections of what a lease was charged: refunds and adjustments."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.reasons import NO_LEASE
from gpucredits.api.http.scope import submit, visible_lease
from gpucredits.core.outcome import Adjusted, Refunded
from gpucredits.service.access.permissions import Permission
from gpucredits.wire.ledger.correction import (
    CorrectionAnswer,
    CorrectionRequest,
    adjust_from_wire,
    correction_to_wire,
    refund_from_wire,
)

route = Routes("credits")


@route(
    "POST /v1/refunds",
    Permission.CORRECT,
    reasons=(*NO_LEASE, "refund_exceeds"),
    status=201,
    client="refund(reservation_id, amount)",
)
async def post_refund(call: ApiRequest[CorrectionRequest, NoQuery]) -> CorrectionAnswer:
    """Give settled credits back to the grants that paid."""
    text = call.body.reservation_id
    org_id, number = await visible_lease(call, text)
    outcome = await submit(call, org_id, refund_from_wire(number, call.body), Refunded)
    return correction_to_wire(org_id, text, outcome)


@route(
    "POST /v1/adjustments",
    Permission.CORRECT,
    reasons=NO_LEASE,
    status=201,
    client="adjust(reservation_id, amount)",
)
async def post_adjustment(call: ApiRequest[CorrectionRequest, NoQuery]) -> CorrectionAnswer:
    """Charge more for a lease than was settled."""
    text = call.body.reservation_id
    org_id, number = await visible_lease(call, text)
    outcome = await submit(call, org_id, adjust_from_wire(number, call.body), Adjusted)
    return correction_to_wire(org_id, text, outcome)
