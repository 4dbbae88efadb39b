"""Handlers of the server about itself: health, metrics, description, clock, and the test clock."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.core.bounds import SECOND_US
from gpucredits.service.access import Permission
from gpucredits.service.acts import Act
from gpucredits.service.clock import move_clock
from gpucredits.service.health import alarms_of, check_health
from gpucredits.service.metrics import measure
from gpucredits.store.clock import read_clock, read_offset
from gpucredits.version import __version__
from gpucredits.wire.metrics import MEDIA_TYPE, exposition
from gpucredits.wire.scalars import format_instant
from gpucredits.wire.system import (
    Alarm,
    ClockAnswer,
    ClockRequest,
    HealthAnswer,
    RequestLimitsHealth,
    TimeAnswer,
)

SYSTEM = 0  # the org of what belongs to no org


async def get_health(call: Call[None, NoQuery]) -> HealthAnswer:
    """Whether work is moving; 503 when it is not."""
    status, detail = await check_health(call.services.pool, call.services.ledger.funnel)
    if status != "ok":
        call.status = int(HTTPStatus.SERVICE_UNAVAILABLE)
    limits = call.services.limiter.health
    orgs_ahead = call.services.ledger.funnel.shelf.steadiness.orgs_ahead
    alarms = alarms_of(limits, orgs_ahead)
    return HealthAnswer(
        status=status,
        version=__version__,
        detail=detail,
        alarms=[Alarm(name=name, detail=why, count=n) for name, why, n in alarms],
        request_limits=RequestLimitsHealth(
            home=limits.home,
            state="alone" if limits.is_alone else "held",
            passed_alone=limits.passed_alone,
            let_through=limits.let_through,
        ),
    )


async def get_metrics(call: Call[None, NoQuery]) -> msgspec.Raw:
    """What this server measures of itself, as Prometheus reads it. No label names a tenant."""
    return msgspec.Raw(exposition(await measure(call.services)).encode())


async def get_clock(call: Call[None, NoQuery]) -> TimeAnswer:
    """What time it is here: whoever counts from now counts from this."""
    return TimeAnswer(now=format_instant(await read_clock(call.services.pool)))


async def post_test_clock(call: Call[ClockRequest, NoQuery]) -> ClockAnswer:
    """Move the server's time on; it never goes back."""
    pool = call.services.pool
    if call.dry_run or not call.body.advance_seconds:
        offset = await read_offset(pool)
    else:
        act = Act(org_id=SYSTEM)
        step = call.body.advance_seconds * SECOND_US
        offset = await move_clock(pool, act, step, actor=call.actor, request_id=call.request_id)
        call.services.keyring.forget_all()  # some may have expired
    now = await read_clock(pool)
    return ClockAnswer(now=format_instant(now), offset_seconds=offset // SECOND_US)


class Description:
    """The handler of the OpenAPI document, which is made once."""

    __name__ = "get_openapi"
    __doc__ = "This document."

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}

    async def __call__(self, call: Call[None, NoQuery]) -> dict[str, Any]:
        """The document as it was made when the server started."""
        del call
        return self.document


def system_routes(description: Description, *, has_test_clock: bool) -> list[Route]:
    """Health, description and clock always, the test clock only on a server started with one."""
    table = [
        Route(
            method="GET",
            path="/healthz",
            summary="Whether work is moving",
            handler=get_health,
            permission=None,
            answer=HealthAnswer,
            tag="system",
        ),
        Route(
            method="GET",
            path="/metrics",
            summary="Metrics of this server, for Prometheus",
            handler=get_metrics,
            permission=Permission.READ_METRICS,
            answer=str,
            media=MEDIA_TYPE,
            tag="system",
        ),
        Route(
            method="GET",
            path="/v1/openapi.json",
            summary="This document",
            handler=description,
            permission=None,
            answer=dict[str, Any],
            tag="system",
        ),
        Route(
            method="GET",
            path="/v1/clock",
            summary="What time it is on this server",
            handler=get_clock,
            permission=Permission.READ_CLOCK,
            answer=TimeAnswer,
            tag="system",
        ),
    ]
    if has_test_clock:
        table.append(
            Route(
                method="POST",
                path="/v1/test/clock",
                summary="Move a test server's time on",
                handler=post_test_clock,
                permission=Permission.MOVE_CLOCK,
                body=ClockRequest,
                answer=ClockAnswer,
                tag="system",
            )
        )
    return table
