"""Corrections on the wire: refunds and adjustments, lot by lot."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from gpucredits.core import ids
from gpucredits.core.command import Adjust, Refund
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Adjusted, Refunded
from gpucredits.wire.documented import GRANT_ID, NOTE, RESERVATION_ID, doc
from gpucredits.wire.scalars import Amount, CreditsText, Note


class CorrectionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Give back, or charge on top of, what a reservation settled."""

    reservation_id: Annotated[str, RESERVATION_ID]
    amount: Annotated[Amount, doc("Credits to give back, or to charge on top.")]
    note: Annotated[Note, NOTE] = field(default_factory=lambda: Note(""))


class PaidLot(Struct, kw_only=True):
    """A part of a correction; a lot without a grant is debt or the house's overrun."""

    grant_id: Annotated[str | None, GRANT_ID]
    kind: Annotated[
        Literal["grant", "debt", "overrun"],
        doc("A grant, a postpaid debt, or an overrun that the house covered."),
    ]
    amount: Annotated[CreditsText, doc("Credits taken from the lot.")]


class CorrectionAnswer(Struct, kw_only=True):
    """What was given back or charged, lot by lot."""

    reservation_id: Annotated[str, RESERVATION_ID]
    amount: Annotated[CreditsText, doc("Credits that were given back or charged.")]
    lots: Annotated[list[PaidLot], doc("The parts, one for each grant.")]


def refund_from_wire(reservation: int, request: CorrectionRequest) -> Refund:
    """The core's command."""
    return Refund(reservation_id=reservation, amount=int(request.amount), note=str(request.note))


def adjust_from_wire(reservation: int, request: CorrectionRequest) -> Adjust:
    """The core's command."""
    return Adjust(reservation_id=reservation, amount=int(request.amount), note=str(request.note))


def correction_to_wire(
    org_id: int, reservation_id: str, outcome: Refunded | Adjusted
) -> CorrectionAnswer:
    """The answer to a refund or an adjustment."""
    return CorrectionAnswer(
        reservation_id=reservation_id,
        amount=format_credits(outcome.amount),
        lots=[lot_to_wire(org_id, grant_id, amount) for grant_id, amount in outcome.lots],
    )


def lot_to_wire(org_id: int, grant_id: int, amount: int) -> PaidLot:
    """A lot, or the debt or overrun in its place."""
    if grant_id > 0:
        text = ids.format_id(ids.GRANT, org_id, grant_id)
        return PaidLot(grant_id=text, kind="grant", amount=format_credits(amount))
    kind: Literal["debt", "overrun"] = "overrun" if grant_id < 0 else "debt"
    return PaidLot(grant_id=None, kind=kind, amount=format_credits(amount))
