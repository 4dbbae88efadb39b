"""Handlers of prices."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import AnyCall, account_exists, act_of, org_number, visible
from gpucredits.core.account import lineage
from gpucredits.core.bounds import NEVER_US
from gpucredits.service.access.permissions import Permission
from gpucredits.service.billing.prices import (
    NewPrice,
    PriceEnd,
    PriceFilter,
    add_price,
    end_price,
    list_prices,
)
from gpucredits.wire.billing.price import (
    NewPriceAnswer,
    PriceAnswer,
    PriceEndRequest,
    PricePage,
    PriceRequest,
    added_to_wire,
    listed_to_wire,
    price_to_wire,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.scalars import AccountPath, GpuType, Instant, Region

route = Routes("prices")


class PriceQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which versions to list."""

    gpu_type: Annotated[GpuType | None, doc("Only prices of this GPU type.")] = None
    region: Annotated[Region | None, doc("Only prices of this region.")] = None
    account: Annotated[AccountPath | None, doc("Only discounts of this account.")] = None
    effective_by: Annotated[Instant | None, doc("Only versions in force by this instant.")] = None


@route(
    "POST /v1/prices",
    Permission.SET_PRICE,
    reasons=(*NO_ACCOUNT, "window_ended"),
    status=201,
    client="set_price(gpu_type, credits_per_gpu_hour)",
)
async def post_price(call: ApiRequest[PriceRequest, NoQuery]) -> NewPriceAnswer:
    """Add a version of a list price, or of the discount of an account.

    A discount holds for the account and everything below it. A version with ``effective_to`` ends
    at that instant, and the earlier version holds again.
    """
    body = call.body
    org_id, account = await owner_of(call, body.account)
    added, call.replayed = await call.services.run(
        add_price,
        act_of(call, org_id),
        NewPrice(
            gpu_type=str(body.gpu_type),
            region=str(body.region),
            credits_per_gpu_hour=int(body.credits_per_gpu_hour),
            effective_from=None if body.effective_from is None else int(body.effective_from),
            effective_to=NEVER_US if body.effective_to is None else int(body.effective_to),
            account=account,
        ),
    )
    return added_to_wire(added.price, is_backdated=added.is_backdated, is_behind=added.is_behind)


@route(
    "POST /v1/prices:end",
    Permission.SET_PRICE,
    reasons=(*NO_ACCOUNT, "window_ended", "price_unknown"),
    client="end_price(gpu_type)",
)
async def post_price_end(call: ApiRequest[PriceEndRequest, NoQuery]) -> PriceAnswer:
    """End a list price, or the discount of an account.

    The price ends now or at ``effective_to``. Leases that were admitted before keep their price.
    """
    body = call.body
    org_id, account = await owner_of(call, body.account)
    price, call.replayed = await call.services.run(
        end_price,
        act_of(call, org_id),
        PriceEnd(
            gpu_type=str(body.gpu_type),
            region=str(body.region),
            effective_to=None if body.effective_to is None else int(body.effective_to),
            account=account,
        ),
    )
    return price_to_wire(price)


async def owner_of(call: AnyCall, path: str | None) -> tuple[int, str]:
    """(org, account) that a price is for; the list price is the system's, for nobody."""
    if path is None:
        return 0, ""
    account = visible(call, path)
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    return org_id, account


@route("GET /v1/prices", Permission.READ_PRICES, reasons=NO_ACCOUNT, client="price_page()")
async def get_prices(call: ApiRequest[None, PriceQuery]) -> PricePage:
    """List prices and discounts, the newest version first.

    A key sees list prices, and the discounts of its scope and of the accounts above.
    """
    query, scope = call.query, call.principal.scope
    account = None if query.account is None else visible(call, query.account)
    rows = await call.services.run(
        list_prices,
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
