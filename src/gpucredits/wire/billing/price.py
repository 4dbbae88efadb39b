"""Prices on the wire: versions by start, list prices and discounts."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Struct, field

from gpucredits.core.gpu_type import REGION_DEFAULT
from gpucredits.core.money import MILLI_PER_GPU, format_credits
from gpucredits.core.price import Price
from gpucredits.wire.documented import GPU_TYPE, NEXT_CURSOR, REGION, STATE, doc
from gpucredits.wire.ledger.reservation import format_price_id, format_rate
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

PER_GPU_HOUR = doc("The price of one GPU for one hour.")
HOLDS_FROM = doc("From when the price holds; now unless given.")
HOLDS_UNTIL = doc("When the price ends (exclusive); null if it has no end.")
BEHIND = (
    "The price is from {since}, which has passed, and is not in force now: a version or an end "
    "with a later start stands in front of it. It changes nothing that is already pinned. Add the "
    "price with effect from now if it is to be in force."
)


class PriceRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new version of a price; an account makes it a discount for that subtree.

    With ``effective_to`` the version ends at that instant, and earlier ones hold again.
    """

    gpu_type: Annotated[GpuType, GPU_TYPE]
    credits_per_gpu_hour: Annotated[HourPrice, PER_GPU_HOUR]
    region: Annotated[Region, REGION] = field(default_factory=lambda: Region(REGION_DEFAULT))
    effective_from: Annotated[Instant | None, HOLDS_FROM] = None
    effective_to: Annotated[Instant | None, HOLDS_UNTIL] = None
    account: Annotated[
        AccountPath | None,
        doc("The account whose tree gets the discount; absent means a list price."),
    ] = None


class PriceEndRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The end of a price: from ``effective_to`` on, or from now on, there is none.

    With an account, the discount of that account ends.
    """

    gpu_type: Annotated[GpuType, GPU_TYPE]
    region: Annotated[Region, REGION] = field(default_factory=lambda: Region(REGION_DEFAULT))
    effective_to: Annotated[Instant | None, doc("When the price ends; now unless given.")] = None
    account: Annotated[
        AccountPath | None, doc("The account whose discount ends; absent means the list price.")
    ] = None


class PriceAnswer(Struct, kw_only=True):
    """One version of a price."""

    price_id: Annotated[str, doc("The id of this version.")]
    gpu_type: Annotated[str, GPU_TYPE]
    region: Annotated[str, REGION]
    credits_per_gpu_hour: Annotated[CreditsText, PER_GPU_HOUR]
    credits_per_gpu_second: Annotated[
        str, doc("The same price per second, cut after 12 decimals; the price per hour is exact.")
    ]
    effective_from: Annotated[InstantText, HOLDS_FROM]
    effective_to: Annotated[InstantText | None, HOLDS_UNTIL]
    account: Annotated[str | None, doc("The account that has the discount; null for a list price.")]


class NewPriceAnswer(PriceAnswer, kw_only=True):
    """A version that was added, with a note if its start had already passed."""

    note: Annotated[
        str | None, doc("What a price with effect in the past leaves unchanged; null otherwise.")
    ]


class ListedPrice(PriceAnswer, kw_only=True):
    """A version in a list, and whether it is in force now, is to come, was replaced or ended."""

    state: Annotated[PriceStateName, STATE]


class PricePage(Struct, kw_only=True):
    """Versions of prices, the newest first."""

    prices: Annotated[list[ListedPrice], doc("The versions of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


def price_to_wire(price: Price) -> PriceAnswer:
    """The price as it is shown."""
    return PriceAnswer(
        price_id=format_price_id(price.price_id) or "",
        gpu_type=price.gpu_type,
        region=price.region,
        credits_per_gpu_hour=format_credits(price.credits_per_gpu_hour),
        credits_per_gpu_second=format_rate(MILLI_PER_GPU * price.credits_per_gpu_hour),
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
