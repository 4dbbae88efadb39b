"""Handlers of top-ups on the books; payments are recorded through the credit handlers."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.paging import AccountPageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import TOPUP_UNKNOWN, page_about
from gpucredits.api.ledger.credit import topup_param
from gpucredits.core.outcome import ToppedUp
from gpucredits.core.topup import TopUpStatus
from gpucredits.service.access.permissions import Permission, sees, sees_org
from gpucredits.store.ledger.topups import TopUpFilter
from gpucredits.wire.credit import TopUpAnswer, TopUpPage, TopUpStatusName, topup_to_wire


class TopUpQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which top-ups to list."""

    status: TopUpStatusName | None = None


async def get_topups(call: ApiRequest[None, TopUpQuery]) -> TopUpPage:
    """Top-ups of an account, the latest first."""
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


async def get_topup(call: ApiRequest[None, NoQuery]) -> TopUpAnswer:
    """One top-up."""
    org_id, number = topup_param(call)
    if sees_org(call.principal, org_id):
        for row, path in await call.services.reads.topups(org_id, TopUpFilter(number=number)):
            if sees(call.principal, path):
                return topup_to_wire(org_id, ToppedUp(row, path))
    raise RefusedError(TOPUP_UNKNOWN)


ROUTES = [
    Route(
        method="GET",
        path="/v1/topups",
        summary="Top-ups of an account",
        handler=get_topups,
        permission=Permission.READ,
        query=TopUpQuery,
        answer=TopUpPage,
        reasons=NO_ACCOUNT,
        tag="credits",
    ),
    Route(
        method="GET",
        path="/v1/topups/{topup}",
        summary="One top-up",
        handler=get_topup,
        permission=Permission.READ,
        answer=TopUpAnswer,
        reasons=("topup_unknown",),
        tag="credits",
    ),
]
