"""The receipt of a job: GPU-time, price, credits, and which grants paid.

Must not: compute a charge; every number comes from the ledger.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from gpucredits.client import AsyncClient, Invalid, Refused
from gpucredits.core.duration import format_ms
from gpucredits.wire.ledger.entry import EntryAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer

HOUR_MS = 3_600_000


class GrantShare(msgspec.Struct, kw_only=True):
    """The amount that one grant paid; the house covered an amount without a grant's id."""

    grant_id: str | None
    paid: str


class Receipt(msgspec.Struct, kw_only=True):
    """The cost of a job by the ledger."""

    reservation_id: str
    job_id: str
    account: str
    payer: str
    gpu_type: str
    gpus: str
    used_ms: int
    gpu_hours: str
    price_per_gpu_hour: str
    price_id: str | None
    credits: str
    grants: list[GrantShare]
    state: str
    exit_code: int
    ended_because: str = ""


async def receipt_of(
    client: AsyncClient, reservation_id: str, *, exit_code: int, because: str
) -> Receipt:
    """The receipt of a lease that has ended."""
    lease = await client.reservation(reservation_id)
    gpus = Decimal(str(lease.gpu_count))
    return Receipt(
        reservation_id=reservation_id,
        job_id=lease.job_id,
        account=lease.account,
        payer=lease.payer,
        gpu_type=lease.gpu_type,
        gpus=plain(gpus),
        used_ms=lease.used_ms,
        gpu_hours=plain((gpus * lease.used_ms / HOUR_MS).quantize(Decimal("0.000001"))),
        price_per_gpu_hour=plain(Decimal(lease.rate_per_hour) / gpus),
        price_id=lease.price_id,
        credits=lease.settled,
        grants=await grants_of(client, lease),
        state=lease.state,
        exit_code=exit_code,
        ended_because=because,
    )


async def grants_of(client: AsyncClient, lease: ReservationAnswer) -> list[GrantShare]:
    """The grants that paid, in the order of their first payment, as far as the key may see them."""
    paid: dict[str | None, Decimal] = {}
    for payer in lease.payers:
        for entry in reversed(await settlements(client, payer.account, lease.reservation_id)):
            paid[entry.grant_id] = paid.get(entry.grant_id, Decimal(0)) + Decimal(entry.amount)
    return [GrantShare(grant_id=each, paid=plain(amount)) for each, amount in paid.items()]


async def settlements(client: AsyncClient, payer: str, reservation_id: str) -> list[EntryAnswer]:
    """A payer's payments for a lease, the latest first; empty if the key may not see the payer."""
    listed = client.entries(account=payer, reservation_id=reservation_id, type="settle")
    try:
        return [each async for each in listed]
    except (Invalid, Refused):  # an account above is not named
        return []


def lines(receipt: Receipt) -> list[str]:
    """The receipt as lines of text."""
    price = f"{receipt.price_per_gpu_hour} credits a GPU-hour"
    facts = [
        ("reservation", f"{receipt.reservation_id} ({receipt.state})"),
        ("GPU-time", f"{receipt.gpus} x {receipt.gpu_type} for {format_ms(receipt.used_ms)}"),
        ("GPU-hours", receipt.gpu_hours),
        ("price", f"{price} ({receipt.price_id})" if receipt.price_id else price),
        ("credits", receipt.credits),
        (
            "paid by",
            ", ".join(f"{each.grant_id or 'house'} {each.paid}" for each in receipt.grants),
        ),
        ("ended because", receipt.ended_because),
    ]
    return [f"  {name:<13}  {value}" for name, value in facts if value]


def plain(number: Decimal) -> str:
    """A decimal without exponent or trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
