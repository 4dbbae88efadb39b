"""Calls about prices: new versions and what is in force."""

from __future__ import annotations

from gpucredits.client.call import Call, Number, When, body_of, read, write
from gpucredits.wire.price import (
    NewPriceAnswer,
    PriceAnswer,
    PriceEndRequest,
    PricePage,
    PriceRequest,
)


def set_price(
    gpu_type: str,
    credits_per_gpu_hour: Number,
    *,
    region: str | None = None,
    effective_from: When | None = None,
    effective_to: When | None = None,
    account: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[NewPriceAnswer]:
    """A new version of a price; an account makes it a discount for that subtree.

    With ``effective_to`` the version ends at that instant, and earlier ones hold again.
    """
    body = body_of(
        PriceRequest,
        gpu_type=gpu_type,
        credits_per_gpu_hour=credits_per_gpu_hour,
        region=region,
        effective_from=effective_from,
        effective_to=effective_to,
        account=account,
    )
    return write("/v1/prices", NewPriceAnswer, body=body, key=key, dry_run=dry_run)


def end_price(
    gpu_type: str,
    *,
    region: str | None = None,
    effective_to: When | None = None,
    account: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PriceAnswer]:
    """End a list price, or the discount of an account, now or at an instant to come."""
    body = body_of(
        PriceEndRequest,
        gpu_type=gpu_type,
        region=region,
        effective_to=effective_to,
        account=account,
    )
    return write("/v1/prices:end", PriceAnswer, body=body, key=key, dry_run=dry_run)


def price_page(
    *,
    gpu_type: str | None = None,
    region: str | None = None,
    account: str | None = None,
    effective_by: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[PricePage]:
    """A page of versions of prices, the newest first."""
    return read(
        "/v1/prices",
        PricePage,
        gpu_type=gpu_type,
        region=region,
        account=account,
        effective_by=effective_by,
        cursor=cursor,
        limit=limit,
    )
