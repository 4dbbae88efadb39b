"""Handlers of prices."""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import account_exists, org_number, visible
from gpucredits.api.submit import act_of
from gpucredits.core.account import lineage
from gpucredits.service.access import Permission
from gpucredits.service.prices import NewPrice, PriceFilter, add_price, list_prices
from gpucredits.wire.price import (
    PriceAnswer,
    PricePage,
    PriceRequest,
    listed_to_wire,
    price_to_wire,
)
from gpucredits.wire.scalars import AccountPath, Instant, Name


class PriceQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which versions to list."""

    gpu_type: Name | None = None
    region: Name | None = None
    account: AccountPath | None = None
    effective_by: Instant | None = None


async def post_price(call: Call[PriceRequest, NoQuery]) -> PriceAnswer:
    """Add a version of a list price, or of a discount for an account and all below it."""
    body = call.body
    org_id, account = 0, ""
    if body.account is not None:
        account = visible(call, body.account)
        org_id = await org_number(call, account)
        await account_exists(call, org_id, account)
    price, call.replayed = await add_price(
        call.services.pool,
        act_of(call, org_id),
        NewPrice(
            gpu_type=str(body.gpu_type),
            region=str(body.region),
            credits_per_gpu_hour=int(body.credits_per_gpu_hour),
            effective_from=None if body.effective_from is None else int(body.effective_from),
            account=str(account),
        ),
        actor=call.actor,
        request_id=call.request_id,
    )
    return price_to_wire(price)


async def get_prices(call: Call[None, PriceQuery]) -> PricePage:
    """List prices, and the discounts that the caller's scope has or is under."""
    query, scope = call.query, call.principal.scope
    account = None if query.account is None else visible(call, query.account)
    rows = await list_prices(
        call.services.pool,
        PriceFilter(
            gpu_type=query.gpu_type,
            region=query.region,
            account=account,
            in_force_at=query.effective_by,
            scope=scope,
            lineage=tuple(lineage(scope)),
        ),
        before=number_cursor(query, LAST),
        limit=query.limit + 1,
    )
    rows, following = page(rows, query, lambda row: row[0].price_id)
    listed = [listed_to_wire(price, state) for price, state in rows]
    return PricePage(prices=listed, next_cursor=following)


ROUTES = [
    Route(
        method="POST",
        path="/v1/prices",
        summary="Add a version of a price",
        handler=post_price,
        permission=Permission.SET_PRICE,
        body=PriceRequest,
        answer=PriceAnswer,
        status=201,
        needs_key=True,
        reasons=NO_ACCOUNT,
        tag="prices",
    ),
    Route(
        method="GET",
        path="/v1/prices",
        summary="List prices and discounts",
        handler=get_prices,
        permission=Permission.READ_PRICES,
        query=PriceQuery,
        answer=PricePage,
        reasons=NO_ACCOUNT,
        tag="prices",
    ),
]
