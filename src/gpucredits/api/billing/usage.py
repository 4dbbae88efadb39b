"""Handlers of use: what nodes measured, and what was paid for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Final

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError
from gpucredits.api.http.paging import LAST, PAGE_DEFAULT, Limit, PageQuery, in_order, no_cursor
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import (
    account_exists,
    account_param,
    note_elsewhere,
    org_number,
    require_here,
)
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.core.bounds import DAY_US
from gpucredits.core.ids import lease_number
from gpucredits.core.money import MILLI_PER_GPU, format_credits
from gpucredits.service.access.permissions import Permission, attests, sees, sees_org
from gpucredits.service.billing.usage import Recorded, UsageRow, record_use
from gpucredits.service.reads.clock import read_clock
from gpucredits.service.reads.spending import LeaseUsage, UsageQuestion, read_usage
from gpucredits.service.reconciliation.unmatched_use import keep_unknown
from gpucredits.wire.billing.usage import (
    GroupingName,
    JobUsage,
    PaidGroup,
    PaidTotal,
    UsageEvent,
    UsagePage,
    UsageRequest,
    UsageResult,
    UsageResults,
    UsageStatus,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.scalars import Instant, format_instant, gpus_to_wire

DEFAULT_DAYS_BEFORE: Final = 30

_CURSOR = re.compile(r"[0-9]{1,19}\.[0-9]{1,19}\.[0-9]{1,19}\.[0-9]{1,19}", re.ASCII)

Found = tuple[int, str, str, int, int]  # org, job, node, and reservation or else account


route = Routes("usage")


class UsageQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """In which time, grouped by what; the last 31 days by job unless asked otherwise."""

    since: Annotated[
        Instant | None,
        doc("From this instant on; unless given, the start of the UTC day 30 days before until."),
    ] = None
    until: Annotated[Instant | None, doc("Before this instant; now unless given.")] = None
    by: Annotated[GroupingName, doc("The property that spending is grouped by.")] = "job"
    limit: Annotated[Limit, doc("The maximum number of rows of each list.")] = PAGE_DEFAULT // 2


@route("POST /v1/usage", Permission.BEAT, needs_key=False, client="report_usage")
async def post_usage(call: ApiRequest[UsageRequest, NoQuery]) -> UsageResults:
    """Store what a node measured.

    The seq of an event makes the event safe to repeat. A server with a bus answers ``accepted``
    when the bus has the events durably; they are stored soon after.
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
            rows.append(_row(event, found, is_attested=attests(call.principal)))
    unknown = [position for position in range(len(events)) if position not in places]
    dropped: set[int] = set()
    if unknown and not call.dry_run:
        dropped = await _keep_unknown(call, unknown)
    pipeline = call.services.pipeline
    if pipeline is not None and not call.dry_run:
        await pipeline.publish_use(rows)
        statuses: list[UsageStatus] = ["accepted"] * len(rows)
    else:
        recorded = await call.services.run(record_use, rows, dry_run=call.dry_run)
        statuses = [_status(place, recorded) for place in range(len(rows))]
    results = [
        UsageResult(
            seq=event.seq,
            reservation_id=event.reservation_id,
            job_id=event.job_id,
            status=statuses[places[position]]
            if position in places
            else ("dropped" if position in dropped else "unknown"),
        )
        for position, event in enumerate(events)
    ]
    return UsageResults(
        results=results,
        stored=statuses.count("stored"),
        duplicates=statuses.count("duplicate"),
        accepted=statuses.count("accepted"),
        dropped=statuses.count("dropped") + len(dropped),
    )


def _status(place: int, recorded: Recorded) -> UsageStatus:
    if place in recorded.dropped:
        return "dropped"
    return "stored" if place in recorded.stored else "duplicate"


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
    read = await call.services.run(
        read_usage,
        UsageQuestion(
            org_id=org_id,
            account=account,
            since=place.since,
            until=place.until,
            by=query.by,
            limit=query.limit,
            place=place.group,
            before=place.before,
        ),
    )
    paid = read.paid
    group = LAST if paid.following is None else paid.following
    following = replace(place, group=group, before=read.before)
    is_last = group == LAST and not read.before
    return UsagePage(
        account=account,
        since=format_instant(place.since),
        until=format_instant(place.until),
        by=query.by,
        total=PaidTotal(
            spent=format_credits(paid.amount),
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
        leases=[_job_usage(org_id, each) for each in read.leases],
        next_cursor=None if is_last else following.cursor,
    )


@dataclass(frozen=True, slots=True)
class UsageCursor:
    """Where a page begins in both lists; the bounds of the time stay those of the first page.

    Groups go on at ``group``, leases ``before`` a number; LAST and 0 say that all were shown.
    """

    since: int
    until: int
    group: int = 0
    before: int = LAST

    @property
    def cursor(self) -> str:
        """The cursor as text."""
        return f"{self.since}.{self.until}.{self.group}.{self.before}"


def place_in(query: UsageQuery, now: int) -> UsageCursor:
    """Where a page begins: at a cursor, else with the time asked for, which ends now at last."""
    if query.cursor is None:
        until = now if query.until is None else min(int(query.until), now)
        since = int(query.since) if query.since is not None else default_since(until)
        in_order(since, query.until)
        return UsageCursor(since, until)
    if _CURSOR.fullmatch(query.cursor) is None:
        raise no_cursor()
    place = UsageCursor(*(int(part) for part in query.cursor.split(".")))
    is_other = query.since not in (None, place.since) or int(query.until or LAST) < place.until
    if is_other or max(place.since, place.until, place.group, place.before) > LAST:
        raise no_cursor()
    return place


def default_since(until: int) -> int:
    """The beginning of a UTC day: 31 days, the day of ``until`` among them."""
    return max((until - 1) // DAY_US * DAY_US - DEFAULT_DAYS_BEFORE * DAY_US, 0)


def _job_usage(org_id: int, used: LeaseUsage) -> JobUsage:
    lease, found = used.lease, used.measured
    return JobUsage(
        spent=format_credits(lease.amount),
        reservation_id=ids.format_id(ids.RESERVATION, org_id, lease.reservation_id),
        account=lease.account,
        job_id=lease.job_id,
        gpu_type=lease.gpu_type,
        gpu_count=gpus_to_wire(lease.milli_gpus),
        used_ms=lease.used_ms,
        gpu_ms=lease.used_ms * lease.milli_gpus // MILLI_PER_GPU,
        settled=format_credits(lease.settled),
        adjusted=format_credits(lease.adjusted),
        refunded=format_credits(lease.refunded),
        charged=format_credits(lease.settled + lease.adjusted - lease.refunded),
        measured_ms=found.used_ms,
        events=found.events,
        late_ms=max(found.late_used_ms - lease.used_ms, 0),
        admitted_at=format_instant(lease.admitted_at),
    )


async def _keep_unknown(call: ApiRequest[UsageRequest, NoQuery], positions: list[int]) -> set[int]:
    """Keep use of leases that do not exist, for people to look at (api/reconciliation).

    It is kept in the caller's own org, or for a key of the system in the org that the id names. A
    caller of one node has none kept in the name of another, whose word it is not.
    Gives the positions of events for which the org has no room.
    """
    rows: list[UsageRow] = []
    kept: list[int] = []
    for position in positions:
        event = call.body.events[position]
        number = None if event.reservation_id is None else lease_number(event.reservation_id)
        own = call.principal.node
        node = str(event.node or call.body.node or own)
        if number is not None and node == (own or node):
            org_id = number[0] if call.principal.is_system else call.principal.org_id
            found = (org_id, str(event.reservation_id), node, 0, 0)
            rows.append(_row(event, found, is_attested=attests(call.principal)))
            kept.append(position)
    dropped = await call.services.run(keep_unknown, rows) if rows else set()
    return {kept[place] for place in dropped}


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
            if call.principal.node and {lease.node, str(node)} != {call.principal.node}:
                note_elsewhere(call, number, lease.account, lease.node)
                continue
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
            require_here(call, node, f"events[{position}].node")
            found[position] = (number[0], str(event.job_id), node, 0, number[1])
    return found


async def _numbers_of(call: ApiRequest[UsageRequest, NoQuery], path: str) -> tuple[int, int] | None:
    org_id = await call.services.ledger.org_id(org_of(path))
    if org_id is None:
        return None
    account_id = await call.services.directory.account_number(org_id, path)
    return None if account_id is None else (org_id, account_id)


def _row(event: UsageEvent, found: Found, *, is_attested: bool) -> UsageRow:
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
        is_attested and node != "",
    )


def _plain(value: str | int) -> str | int:
    return str(value) if isinstance(value, str) else value
