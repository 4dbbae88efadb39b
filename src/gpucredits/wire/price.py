"""Prices on the wire: versions by start, list prices and discounts."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from msgspec import Struct, field

from gpucredits.core.money import format_credits
from gpucredits.core.price import Price
from gpucredits.wire.reservation import format_price_id, format_rate
from gpucredits.wire.scalars import (
    AccountPath,
    CreditsText,
    HourPrice,
    Instant,
    InstantText,
    Name,
    format_instant,
)

PriceStateName = Literal["in_force", "future", "replaced"]
_STATES: dict[str, PriceStateName] = {name: name for name in get_args(PriceStateName)}


class PriceRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new version of a price; an account makes it a discount for that subtree."""

    gpu_type: Name
    credits_per_gpu_hour: HourPrice
    region: Name = field(default_factory=lambda: Name("default"))
    effective_from: Instant | None = None
    account: AccountPath | None = None


class PriceAnswer(Struct, kw_only=True):
    """One version of a price."""

    price_id: str
    gpu_type: str
    region: str
    credits_per_gpu_hour: CreditsText
    credits_per_gpu_second: str
    effective_from: InstantText
    account: str | None


class ListedPrice(PriceAnswer, kw_only=True):
    """A version in a list, and whether it is in force now, is to come, or has been replaced."""

    state: PriceStateName


class PricePage(Struct, kw_only=True):
    """Versions of prices, the newest first."""

    prices: list[ListedPrice]
    next_cursor: str | None = None


def price_to_wire(price: Price) -> PriceAnswer:
    """The price as it is shown."""
    return PriceAnswer(
        price_id=format_price_id(price.price_id) or "",
        gpu_type=price.gpu_type,
        region=price.region,
        credits_per_gpu_hour=format_credits(price.credits_per_gpu_hour),
        credits_per_gpu_second=format_rate(price.credits_per_gpu_hour),
        effective_from=format_instant(price.effective_from),
        account=price.account or None,
    )


def listed_to_wire(price: Price, state: str) -> ListedPrice:
    """The price as it is shown in a list."""
    return ListedPrice(**msgspec.structs.asdict(price_to_wire(price)), state=_STATES[state])
