"""Handlers of prices."""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import RefusedError
from gpucredits.api.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import AnyCall, account_exists, org_number, visible
from gpucredits.api.submit import act_of
from gpucredits.core.account import lineage
from gpucredits.core.bounds import NEVER_US
from gpucredits.service.access import Permission
from gpucredits.service.prices import (
    NewPrice,
    PriceEnd,
    PriceFilter,
    PriceRefused,
    add_price,
    end_price,
    list_prices,
)
from gpucredits.wire.price import (
    NewPriceAnswer,
    PriceAnswer,
    PriceEndRequest,
    PricePage,
    PriceRequest,
    added_to_wire,
    listed_to_wire,
    price_to_wire,
)
from gpucredits.wire.scalars import AccountPath, GpuType, Instant, Region


class PriceQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which versions to list."""

    gpu_type: GpuType | None = None
    region: Region | None = None
    account: AccountPath | None = None
    effective_by: Instant | None = None


async def post_price(call: Call[PriceRequest, NoQuery]) -> NewPriceAnswer:
    """Add a version of a list price, or of a discount for an account and all below it."""
    body = call.body
    org_id, account = await owner_of(call, body.account)
    try:
        added, call.replayed = await add_price(
            call.services.pool,
            act_of(call, org_id),
            NewPrice(
                gpu_type=str(body.gpu_type),
                region=str(body.region),
                credits_per_gpu_hour=int(body.credits_per_gpu_hour),
                effective_from=None if body.effective_from is None else int(body.effective_from),
                effective_to=NEVER_US if body.effective_to is None else int(body.effective_to),
                account=account,
            ),
            actor=call.actor,
            request_id=call.request_id,
        )
    except PriceRefused as error:
        raise RefusedError(error.refused) from error
    return added_to_wire(added.price, is_backdated=added.is_backdated, is_behind=added.is_behind)


async def post_price_end(call: Call[PriceEndRequest, NoQuery]) -> PriceAnswer:
    """End a list price or a discount; leases that were admitted before keep their price."""
    body = call.body
    org_id, account = await owner_of(call, body.account)
    try:
        price, call.replayed = await end_price(
            call.services.pool,
            act_of(call, org_id),
            PriceEnd(
                gpu_type=str(body.gpu_type),
                region=str(body.region),
                effective_to=None if body.effective_to is None else int(body.effective_to),
                account=account,
            ),
            actor=call.actor,
            request_id=call.request_id,
        )
    except PriceRefused as error:
        raise RefusedError(error.refused) from error
    return price_to_wire(price)


async def owner_of(call: AnyCall, path: str | None) -> tuple[int, str]:
    """(org, account) that a price is for; the list price is the system's, for nobody."""
    if path is None:
        return 0, ""
    account = visible(call, path)
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    return org_id, account


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
        answer=NewPriceAnswer,
        status=201,
        needs_key=True,
        reasons=(*NO_ACCOUNT, "window_ended"),
        tag="prices",
    ),
    Route(
        method="POST",
        path="/v1/prices:end",
        summary="End a price",
        handler=post_price_end,
        permission=Permission.SET_PRICE,
        body=PriceEndRequest,
        answer=PriceAnswer,
        needs_key=True,
        reasons=(*NO_ACCOUNT, "window_ended", "price_unknown"),
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
