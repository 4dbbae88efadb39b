"""Handlers of alarms of drift: what was raised, with its evidence, and who has looked at it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.paging import (
    TreePageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import act_of, filter_of, number_param
from gpucredits.core import ids
from gpucredits.core.money import format_credits
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.reconciliation.drift_alarms import (
    UNKNOWN,
    AlarmFilter,
    AlarmRow,
    acknowledge,
    list_alarms,
    read_alarm,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.reconciliation.comparison import (
    AcknowledgeRequest,
    DriftAlarmAnswer,
    DriftAlarmPage,
    DriftEvidence,
)
from gpucredits.wire.scalars import format_instant

route = Routes("reconciliation")


class AlarmQuery(TreePageQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose alarms to list; open ones unless told otherwise."""

    acknowledged: Annotated[bool, doc("Also alarms that were acknowledged.")] = False


@route(
    "GET /v1/drift-alarms", Permission.READ, reasons=NO_ACCOUNT, client="drift_alarm_page(account)"
)
async def get_drift_alarms(call: ApiRequest[None, AlarmQuery]) -> DriftAlarmPage:
    """List alarms of drift with their evidence, the newest first."""
    query = call.query
    which = await filter_of(call, AlarmFilter, is_open=None if query.acknowledged else True)
    rows = await call.services.run(list_alarms, which)
    rows, following = page(rows, query, lambda row: numbered_place(row.org_id, row.alarm_id))
    return DriftAlarmPage(drift_alarms=[to_wire(row) for row in rows], next_cursor=following)


@route(
    "POST /v1/drift-alarms/{alarm}:acknowledge",
    Permission.SET_POLICY,
    reasons=("alarm_unknown",),
    client="acknowledge_drift_alarm(alarm_id)",
)
async def post_drift_alarm_acknowledge(
    call: ApiRequest[AcknowledgeRequest, NoQuery],
) -> DriftAlarmAnswer:
    """Record that somebody has looked at an alarm."""
    found = number_param(call, "alarm", ids.ALARM)
    row = None if found is None else await call.services.run(read_alarm, *found)
    if row is None or not sees(call.principal, row.account):
        raise RefusedError(UNKNOWN)
    act = act_of(call, row.org_id)
    after, call.replayed = await call.services.run(
        acknowledge, act, row.alarm_id, str(call.body.note)
    )
    return to_wire(after)


def to_wire(row: AlarmRow) -> DriftAlarmAnswer:
    """An alarm as it is shown."""
    lease = ids.format_id(ids.RESERVATION, row.org_id, row.reservation_id)
    return DriftAlarmAnswer(
        alarm_id=ids.format_id(ids.ALARM, row.org_id, row.alarm_id),
        account=row.account,
        reservation_id=lease if row.reservation_id else None,
        job_id=row.job_id or None,
        starts_at=format_instant(row.starts_at),
        drift=format_credits(row.drift),
        settled=format_credits(row.settled),
        sentence=row.sentence,
        evidence=msgspec.convert(row.evidence, DriftEvidence),
        raised_at=format_instant(row.raised_at),
        is_open=row.is_open,
        acknowledged_by=row.acknowledged_by or None,
        acknowledged_at=format_instant(row.acknowledged_at) if row.acknowledged_at else None,
        note=row.note,
    )
