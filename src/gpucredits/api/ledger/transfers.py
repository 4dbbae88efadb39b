"""Handlers of transfers on the books; they are made through the credit handlers."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, Routes
from gpucredits.api.http.paging import AccountPageQuery, in_order, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import page_about
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reads.filters import TransferFilter
from gpucredits.wire.documented import SINCE, UNTIL, doc
from gpucredits.wire.ledger.credit import TransferPage, TransferShown
from gpucredits.wire.scalars import Instant, MetadataFilter, format_instant

route = Routes("credits")


class TransferQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which transfers to list, to or from the account; times are of moving, [since, until)."""

    metadata: Annotated[MetadataFilter | None, doc("Only transfers with these labels.")] = None
    since: Annotated[Instant | None, SINCE] = None
    until: Annotated[Instant | None, UNTIL] = None


@route("GET /v1/transfers", Permission.READ, reasons=NO_ACCOUNT, client="transfer_page(account)")
async def get_transfers(call: ApiRequest[None, TransferQuery]) -> TransferPage:
    """List transfers to and from an account or its tree, the latest first."""
    query = call.query
    in_order(query.since, query.until)
    account, tree, org_id = await page_about(call, query)
    listed = await call.services.reads.transfers(
        org_id,
        TransferFilter(
            account=account,
            tree=tree,
            metadata=dict(query.metadata) if query.metadata else None,
            since=query.since,
            until=query.until,
            before=number_cursor(query, 0),
            limit=query.limit + 1,
        ),
    )
    listed, following = page(listed, query, lambda row: row.number)
    shown = [
        TransferShown(
            transfer_id=row.moved.transfer_id,
            source=row.source,
            target=row.moved.target,
            amount=row.moved.amount,
            metadata=row.moved.metadata,
            at=format_instant(row.recorded_at),
        )
        for row in listed
    ]
    return TransferPage(transfers=shown, next_cursor=following)
