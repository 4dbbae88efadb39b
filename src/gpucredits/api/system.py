"""Handlers of the server about itself: health, metrics, description, clock, and the test clock."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec

from gpucredits.api.http.call import ApiRequest, NoQuery, Route, Routes
from gpucredits.core.bounds import SECOND_US
from gpucredits.metering.standing import PipelineStanding
from gpucredits.service.access.permissions import Permission
from gpucredits.service.metrics import measure
from gpucredits.service.reads.clock import move_clock, read_clock, read_offset
from gpucredits.service.reads.health import (
    alarms_of,
    check_health,
    drift_alarm,
    metering_alarms,
    readers_alarm,
)
from gpucredits.service.write.acts import Act
from gpucredits.version import __version__
from gpucredits.wire.metrics import MEDIA_TYPE, exposition
from gpucredits.wire.scalars import format_instant
from gpucredits.wire.system import (
    Alarm,
    ClockAnswer,
    ClockRequest,
    HealthAnswer,
    MeteringHealth,
    RequestLimitsHealth,
    TimeAnswer,
)

SYSTEM = 0  # the org of what belongs to no org


route = Routes("system")


@route("GET /healthz", None, client="health()")
async def get_health(call: ApiRequest[None, NoQuery]) -> HealthAnswer:
    """Check whether work is moving.

    The status is 503 when work is not moving.
    """
    status, detail = await check_health(call.services.ledger)
    if status != "ok":
        call.status = int(HTTPStatus.SERVICE_UNAVAILABLE)
    limits = call.services.limiter.health
    pipeline = call.services.pipeline
    alarms = alarms_of(limits, call.services.ledger)
    if pipeline is not None:
        alarms += metering_alarms(pipeline.standing)
    alarms += readers_alarm(call.services.event_readers)
    alarms += drift_alarm(call.services.reconciling.counts)
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
        metering=None if pipeline is None else metering_to_wire(pipeline.standing),
    )


def metering_to_wire(standing: PipelineStanding) -> MeteringHealth:
    """How the pipeline stands, as it is shown."""
    stalled_s = max(standing.usage.stalled_s(), standing.events.stalled_s())
    return msgspec.convert(
        {
            "bus": standing.bus,
            "state": standing.state,
            "usage_behind": standing.usage.lag,
            "events_behind": standing.events.lag,
            "stalled_seconds": int(stalled_s),
            "dead_letters": standing.dead_letters,
        },
        MeteringHealth,
    )


@route("GET /metrics", Permission.READ_METRICS, answer=str, media=MEDIA_TYPE)
async def get_metrics(call: ApiRequest[None, NoQuery]) -> msgspec.Raw:
    """Get the metrics of this server, for Prometheus.

    No label names a tenant.
    """
    return msgspec.Raw(exposition(await measure(call.services)).encode())


@route("GET /v1/clock", Permission.READ_CLOCK, client="clock()")
async def get_clock(call: ApiRequest[None, NoQuery]) -> TimeAnswer:
    """Get the time on the server, whose clock decides."""
    return TimeAnswer(now=format_instant(await call.services.run(read_clock)))


@route(
    "POST /v1/test/clock",
    Permission.MOVE_CLOCK,
    needs_key=False,
    client="advance_clock",
)
async def post_test_clock(call: ApiRequest[ClockRequest, NoQuery]) -> ClockAnswer:
    """Move the clock of a server that was started with ``--test-clock`` forward."""
    run = call.services.run
    if call.dry_run or not call.body.advance_seconds:
        offset = await run(read_offset)
    else:
        act = Act(org_id=SYSTEM, actor=call.actor, request_id=call.request_id)
        step = call.body.advance_seconds * SECOND_US
        offset = await run(move_clock, act, step)
        call.services.keyring.forget_all()  # some may have expired
    now = await run(read_clock)
    return ClockAnswer(now=format_instant(now), offset_seconds=offset // SECOND_US)


class Description:
    """The handler of the OpenAPI document, which is made when somebody first asks for it.

    Most servers are never asked, and describing every shape takes a tenth of a second. It is made
    in the event loop, once: shapes of msgspec are not for two threads at a time.
    """

    __name__ = "get_openapi"
    __doc__ = "This document."

    def __init__(self) -> None:
        self.make: Callable[[], dict[str, Any]] = dict
        self._document: dict[str, Any] = {}

    async def __call__(self, call: ApiRequest[None, NoQuery]) -> dict[str, Any]:
        """The document."""
        del call
        if not self._document:
            self._document = self.make()
        return self._document


def described_by(description: Description) -> Route:
    """The row of the OpenAPI document."""
    return Route(
        method="GET",
        path="/v1/openapi.json",
        tag="system",
        handler=description,
        permission=None,
        answer=dict[str, Any],
    )
