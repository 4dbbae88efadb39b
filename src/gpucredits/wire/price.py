"""Prices on the wire: versions by start, list prices and discounts."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from msgspec import Struct, field

from gpucredits.core.gpu_type import REGION_DEFAULT
from gpucredits.core.money import format_credits
from gpucredits.core.price import Price
from gpucredits.wire.reservation import format_price_id, format_rate
from gpucredits.wire.scalars import (
    AccountPath,
    CreditsText,
    GpuType,
    HourPrice,
    Instant,
    InstantText,
    Region,
    format_end,
    format_instant,
)

PriceStateName = Literal["in_force", "future", "replaced", "ended"]
_STATES: dict[str, PriceStateName] = {name: name for name in get_args(PriceStateName)}


PINNED = (
    "The price is in force from {since}, which has passed. It changes nothing that is already "
    "pinned: leases that were admitted before now keep the price they were admitted at."
)

BEHIND = (
    "The price is from {since}, which has passed, and is not in force now: a version or an end "
    "with a later start stands in front of it. It changes nothing that is already pinned. Add the "
    "price with effect from now if it is to be in force."
)


class PriceRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new version of a price; an account makes it a discount for that subtree.

    With ``effective_to`` the version ends at that instant, and earlier ones hold again.
    """

    gpu_type: GpuType
    credits_per_gpu_hour: HourPrice
    region: Region = field(default_factory=lambda: Region(REGION_DEFAULT))
    effective_from: Instant | None = None
    effective_to: Instant | None = None
    account: AccountPath | None = None


class PriceEndRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The end of a price: from ``effective_to`` on, or from now on, there is none.

    With an account, the discount of that account ends.
    """

    gpu_type: GpuType
    region: Region = field(default_factory=lambda: Region(REGION_DEFAULT))
    effective_to: Instant | None = None
    account: AccountPath | None = None


class PriceAnswer(Struct, kw_only=True):
    """One version of a price."""

    price_id: str
    gpu_type: str
    region: str
    credits_per_gpu_hour: CreditsText
    credits_per_gpu_second: str
    effective_from: InstantText
    effective_to: InstantText | None
    account: str | None


class NewPriceAnswer(PriceAnswer, kw_only=True):
    """A version that was added, with a note where its start had passed by then."""

    note: str | None


class ListedPrice(PriceAnswer, kw_only=True):
    """A version in a list, and whether it is in force now, is to come, was replaced or ended."""

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
        effective_to=format_end(price.effective_to),
        account=price.account or None,
    )


def added_to_wire(price: Price, *, is_backdated: bool, is_behind: bool) -> NewPriceAnswer:
    """The answer to a new version."""
    shown = price_to_wire(price)
    text = BEHIND if is_behind else PINNED
    note = text.format(since=shown.effective_from) if is_backdated else None
    return NewPriceAnswer(**msgspec.structs.asdict(shown), note=note)


def listed_to_wire(price: Price, state: str) -> ListedPrice:
    """The price as it is shown in a list."""
    return ListedPrice(**msgspec.structs.asdict(price_to_wire(price)), state=_STATES[state])
