"""Handlers of the ledger itself: its entries as debit/credit pairs."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, Routes
from gpucredits.api.http.paging import AccountPageQuery, in_order, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import page_about
from gpucredits.core.account import org_of
from gpucredits.core.ids import lease_number
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reads.filters import EntryFilter
from gpucredits.wire.documented import SINCE, UNTIL, doc
from gpucredits.wire.ledger.entry import ENTRY_TYPES, EntryPage, EntryTypeName, entry_to_wire
from gpucredits.wire.scalars import Instant, Name

route = Routes("ledger")


class EntryQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which entries to list; times are those of taking effect, [since, until)."""

    job_id: Annotated[Name | None, doc("Only entries of this job.")] = None
    reservation_id: Annotated[Name | None, doc("Only entries of this lease.")] = None
    type: Annotated[EntryTypeName | None, doc("Only entries of this type.")] = None
    since: Annotated[Instant | None, SINCE] = None
    until: Annotated[Instant | None, UNTIL] = None


@route("GET /v1/entries", Permission.READ, reasons=NO_ACCOUNT, client="entry_page()")
async def get_entries(call: ApiRequest[None, EntryQuery]) -> EntryPage:
    """List the ledger as debit/credit pairs, the latest first.

    ``since`` and ``until`` compare the time an entry takes effect. ``limit`` counts stored rows.
    """
    query = call.query
    in_order(query.since, query.until)
    account, tree, org_id = await page_about(call, query)
    reservation = 0
    if query.reservation_id is not None:
        number = lease_number(query.reservation_id)
        if number is None or number[0] != org_id:
            return EntryPage(entries=[])
        reservation = number[1]
    listed = await call.services.reads.entries(
        org_of(account),
        EntryFilter(
            account=account,
            tree=tree,
            job_id=str(query.job_id or ""),
            reservation_id=reservation,
            types=() if query.type is None else (int(ENTRY_TYPES[query.type]),),
            since=query.since,
            until=query.until,
            before=number_cursor(query, 0),
            limit=query.limit + 1,
        ),
    )
    listed, following = page(listed, query, lambda row: row.entry.entry_id)
    pairs = [
        pair
        for row in listed
        for pair in entry_to_wire(
            org_id,
            row.entry,
            recorded_at=row.recorded_at,
            account=row.account,
            other=row.other,
            job_id=row.job_id,
        )
        if query.type in {None, pair.type}
    ]
    return EntryPage(entries=pairs, next_cursor=following)
