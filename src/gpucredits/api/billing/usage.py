"""Handlers of use: what nodes measured, and what was paid for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Final

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError
from gpucredits.api.http.paging import LAST, PageQuery, no_cursor
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import account_exists, account_param, org_number
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.core.ids import lease_number
from gpucredits.core.money import format_credits
from gpucredits.core.reservation import Reservation
from gpucredits.service.access.permissions import Permission, sees, sees_org
from gpucredits.service.billing.usage import Measured, UsageRow, measured_use, record_use
from gpucredits.service.reads.clock import read_clock
from gpucredits.service.reads.filters import ReservationFilter
from gpucredits.wire.documented import doc
from gpucredits.wire.scalars import Instant, format_instant
from gpucredits.wire.usage import (
    GroupingName,
    JobUsage,
    PaidGroup,
    PaidTotal,
    UsageEvent,
    UsagePage,
    UsageRequest,
    UsageResult,
    UsageResults,
)

DEFAULT_SPAN_US: Final = 31 * 24 * 3_600 * 1_000_000

_CURSOR = re.compile(r"[0-9]{1,19}\.[0-9]{1,19}\.[0-9]{1,9}\.[0-9]{1,19}", re.ASCII)

Found = tuple[int, str, str, int, int]  # org, job, node, and reservation or else account


route = Routes("usage")


class UsageQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """In which time, grouped by what; the last 31 days by job unless asked otherwise."""

    since: Annotated[
        Instant | None, doc("From this instant on; 31 days before until unless given.")
    ] = None
    until: Annotated[Instant | None, doc("Before this instant; now unless given.")] = None
    by: Annotated[GroupingName, doc("The property that spending is grouped by.")] = "job"


@route("POST /v1/usage", Permission.BEAT, needs_key=False, client="report_usage")
async def post_usage(call: ApiRequest[UsageRequest, NoQuery]) -> UsageResults:
    """Store what a node measured.

    The seq of an event makes the event safe to repeat.
    """
    events = call.body.events
    for position, event in enumerate(events):
        check_event(position, event)
    by_lease = await _by_lease(call, events)
    by_job = await _by_job(call, events)
    rows: list[UsageRow] = []
    places: dict[int, int] = {}
    for position, event in enumerate(events):
        found = by_lease.get(position) or by_job.get(position)
        if found is not None:
            places[position] = len(rows)
            rows.append(_row(event, found))
    fresh = await call.services.run(record_use, rows, dry_run=call.dry_run)
    results = [
        UsageResult(
            seq=event.seq,
            reservation_id=event.reservation_id,
            job_id=event.job_id,
            status="unknown"
            if position not in places
            else "stored"
            if places[position] in fresh
            else "duplicate",
        )
        for position, event in enumerate(events)
    ]
    return UsageResults(results=results, stored=len(fresh), duplicates=len(rows) - len(fresh))


@route(
    "GET /v1/accounts/{account}/usage",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="usage_page(account)",
)
async def get_usage(call: ApiRequest[None, UsageQuery]) -> UsagePage:
    """List what an account and everything below it paid for.

    ``paid`` has the spending in groups, ``leases`` the leases beside what nodes measured.
    ``total`` is the spending from ``since`` until ``until``, whatever the page shows.
    """
    account, query = account_param(call), call.query
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    place = place_in(query, await call.services.run(read_clock))
    time = {"since": place.since, "until": place.until}
    paid = await call.services.reads.usage(
        account, **time, by=query.by, limit=query.limit, offset=place.group
    )
    leases: list[JobUsage] = []
    before = 0
    if place.before:
        leases, before = await _leases(call, org_id, account, place)
    following = replace(place, group=place.group + len(paid.groups), before=before)
    is_last = following.group >= paid.group_count and not before
    return UsagePage(
        account=account,
        since=format_instant(place.since),
        until=format_instant(place.until),
        by=query.by,
        total=PaidTotal(
            spent=format_credits(paid.amount),
            reservations=paid.reservations,
            groups=paid.group_count,
        ),
        paid=[
            PaidGroup(
                name=group.name,
                spent=format_credits(group.amount),
                reservations=group.reservations,
            )
            for group in paid.groups
        ],
        leases=leases,
        next_cursor=None if is_last else following.cursor,
    )


@dataclass(frozen=True, slots=True)
class UsageCursor:
    """Where a page begins in both lists of a time, whose bounds stay as they were at first.

    ``group`` groups have been shown; leases go on ``before`` a number, 0 when all were shown.
    """

    since: int
    until: int
    group: int = 0
    before: int = LAST

    @property
    def cursor(self) -> str:
        """As it is told."""
        return f"{self.since}.{self.until}.{self.group}.{self.before}"


def place_in(query: UsageQuery, now: int) -> UsageCursor:
    """Where a page begins: at a cursor, else with the time asked for, which ends now at last."""
    if query.cursor is None:
        until = now if query.until is None else min(int(query.until), now)
        since = max(until - DEFAULT_SPAN_US, 0) if query.since is None else int(query.since)
        return UsageCursor(since, until)
    if _CURSOR.fullmatch(query.cursor) is None:
        raise no_cursor()
    place = UsageCursor(*(int(part) for part in query.cursor.split(".")))
    is_other = query.since not in (None, place.since) or int(query.until or LAST) < place.until
    if is_other or max(place.since, place.until, place.before) > LAST:
        raise no_cursor()
    return place


async def _leases(
    call: ApiRequest[None, UsageQuery], org_id: int, account: str, place: UsageCursor
) -> tuple[list[JobUsage], int]:
    """A page of leases, and before which one the next page goes on; 0 when there is none."""
    limit, services = call.query.limit, call.services
    time = {"since": place.since, "until": place.until}
    spent = await services.reads.leases_in(
        org_id, account, **time, before=place.before, limit=limit + 1
    )
    amounts = dict(spent[:limit])
    if not amounts:
        return [], 0
    listed = await services.reads.reservations(
        org_id, ReservationFilter(numbers=tuple(amounts), limit=limit)
    )
    measured = await services.run(measured_use, org_id, list(amounts))
    shown = [
        _job_usage(org_id, lease, measured, amounts[lease.reservation_id]) for lease, _ in listed
    ]
    return shown, min(amounts) if len(spent) > limit else 0


def _job_usage(
    org_id: int, lease: Reservation, measured: dict[int, Measured], spent: int
) -> JobUsage:
    found = measured.get(lease.reservation_id, Measured())
    return JobUsage(
        spent=format_credits(spent),
        reservation_id=ids.format_id(ids.RESERVATION, org_id, lease.reservation_id),
        account=lease.account,
        job_id=lease.job_id,
        gpu_type=lease.gpu_type,
        gpu_count=lease.gpu_count,
        used_ms=lease.used_ms,
        gpu_ms=lease.used_ms * lease.gpu_count,
        settled=format_credits(lease.settled),
        adjusted=format_credits(lease.adjusted),
        refunded=format_credits(lease.refunded),
        charged=format_credits(lease.charged),
        measured_ms=found.used_ms,
        events=found.events,
        late_ms=max(found.late_used_ms - lease.used_ms, 0),
        admitted_at=format_instant(lease.admitted_at),
    )


def check_event(position: int, event: UsageEvent) -> None:
    """Refuse an event that runs backwards or does not say what it is about."""
    field, wrong = "", ""
    if event.end_ms < event.start_ms:
        field, wrong = "end_ms", "must not be before start_ms"
    elif event.reservation_id is None and (event.account is None or event.job_id is None):
        field, wrong = "reservation_id", "must be given, or else account and job_id"
    elif event.reservation_id is not None and event.account is not None:
        field, wrong = "account", "must be left out where reservation_id is given"
    if wrong:
        place = f"events[{position}].{field}"
        raise ProblemError("invalid_request", f"{place}: {wrong}.", field=place)


async def _by_lease(
    call: ApiRequest[UsageRequest, NoQuery], events: list[UsageEvent]
) -> dict[int, Found]:
    numbers = {
        position: number
        for position, event in enumerate(events)
        if event.reservation_id is not None
        and (number := lease_number(event.reservation_id)) is not None
        and sees_org(call.principal, number[0])
    }
    leases = await call.services.directory.leases(sorted(set(numbers.values())))
    found: dict[int, Found] = {}
    for position, number in numbers.items():
        lease = leases.get(number)
        if lease is not None and sees(call.principal, lease.account):
            node = events[position].node or call.body.node or lease.node
            found[position] = (number[0], lease.job_id, str(node), number[1], 0)
    return found


async def _by_job(
    call: ApiRequest[UsageRequest, NoQuery], events: list[UsageEvent]
) -> dict[int, Found]:
    numbers: dict[str, tuple[int, int] | None] = {}
    found: dict[int, Found] = {}
    for position, event in enumerate(events):
        path = event.account
        if event.reservation_id is not None or path is None or not sees(call.principal, path):
            continue
        if path not in numbers:
            numbers[path] = await _numbers_of(call, path)
        number = numbers[path]
        if number is not None:
            node = str(event.node or call.body.node or "")
            found[position] = (number[0], str(event.job_id), node, 0, number[1])
    return found


async def _numbers_of(call: ApiRequest[UsageRequest, NoQuery], path: str) -> tuple[int, int] | None:
    directory = call.services.directory
    org_id = await directory.org_number(org_of(path))
    account_id = None if org_id is None else await directory.account_number(org_id, path)
    return None if org_id is None or account_id is None else (org_id, account_id)


def _row(event: UsageEvent, found: Found) -> UsageRow:
    org_id, job_id, node, reservation, account = found
    payload = {
        "start_ms": event.start_ms,
        "end_ms": event.end_ms,
        "account": event.account,
        "gpu_type": event.gpu_type,
        "gpu_count": event.gpu_count,
        "gpu_utilization": event.gpu_utilization,
    }
    return UsageRow(
        org_id,
        job_id,
        node,
        reservation,
        account,
        event.seq,
        event.end_ms - event.start_ms,
        {name: _plain(value) for name, value in payload.items() if value is not None},
    )


def _plain(value: str | int) -> str | int:
    return str(value) if isinstance(value, str) else value
