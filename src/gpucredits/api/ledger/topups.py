"""Handlers of top-ups on the books; payments are recorded through the credit handlers."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.paging import AccountPageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import TOPUP_UNKNOWN, page_about
from gpucredits.api.ledger.credit import topup_param
from gpucredits.core.outcome import ToppedUp
from gpucredits.core.topup import TopUpStatus
from gpucredits.service.access.permissions import Permission, sees, sees_org
from gpucredits.service.reads.filters import TopUpFilter
from gpucredits.wire.documented import doc
from gpucredits.wire.ledger.credit import TopUpAnswer, TopUpPage, TopUpStatusName, topup_to_wire

route = Routes("credits")


class TopUpQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which top-ups to list."""

    status: Annotated[TopUpStatusName | None, doc("Only top-ups in this status.")] = None


@route("GET /v1/topups", Permission.READ, reasons=NO_ACCOUNT, client="topup_page(account)")
async def get_topups(call: ApiRequest[None, TopUpQuery]) -> TopUpPage:
    """List the top-ups of an account or its tree, the latest first."""
    query = call.query
    account, _, org_id = await page_about(call, query)
    status = None if query.status is None else int(TopUpStatus[query.status.upper()])
    listed = await call.services.reads.topups(
        org_id,
        TopUpFilter(
            account=account, status=status, before=number_cursor(query, 0), limit=query.limit + 1
        ),
    )
    listed, following = page(listed, query, lambda row: row[0].topup_id)
    answers = [topup_to_wire(org_id, ToppedUp(row, path)) for row, path in listed]
    return TopUpPage(topups=answers, next_cursor=following)


@route(
    "GET /v1/topups/{topup}", Permission.READ, reasons=("topup_unknown",), client="topup(topup_id)"
)
async def get_topup(call: ApiRequest[None, NoQuery]) -> TopUpAnswer:
    """Get one top-up."""
    org_id, number = topup_param(call)
    if sees_org(call.principal, org_id):
        for row, path in await call.services.reads.topups(org_id, TopUpFilter(number=number)):
            if sees(call.principal, path):
                return topup_to_wire(org_id, ToppedUp(row, path))
    raise RefusedError(TOPUP_UNKNOWN)
