"""Exposure on the wire: the most that live leases could still cost if no server answered."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from gpucredits.core.money import format_credits
from gpucredits.core.rules.leases.exposure import Exposure
from gpucredits.wire.documented import doc
from gpucredits.wire.scalars import CreditsText, InstantText


class ExposureSum(Struct, kw_only=True):
    """The most that live leases could still cost if no server answered from now on."""

    leases: Annotated[int, doc("Leases that have not ended.")]
    held: Annotated[CreditsText, doc("Credits held by these leases, escrow included.")]
    escrow: Annotated[CreditsText, doc("The part of the holds for time after the present windows.")]
    promised: Annotated[CreditsText, doc("Credits that leases may overdraw beyond their holds.")]
    grace: Annotated[
        CreditsText,
        doc("Credits that leases may use beyond their holds in the grace after an outage."),
    ]
    total: Annotated[
        CreditsText, doc("The sum of held, promised and grace. Leases never cost more.")
    ]


class PayerExposureAnswer(ExposureSum, kw_only=True):
    """The exposure of one account that pays for leases."""

    account: Annotated[str, doc("The account that pays.")]


class ExposurePage(Struct, kw_only=True):
    """The exposure in total and of each account that pays for live leases, by path."""

    as_of: Annotated[InstantText, doc("The time on the server.")]
    total: Annotated[ExposureSum, doc("The sums over all accounts in scope.")]
    exposures: Annotated[list[PayerExposureAnswer], doc("The accounts of this page that pay.")]
    next_cursor: Annotated[str | None, doc("The cursor of the next page; null on the last.")] = None


def exposure_to_wire(leases: int, exposure: Exposure) -> dict[str, int | str]:
    """The fields of a sum."""
    return {
        "leases": leases,
        **{name: format_credits(value) for name, value in exposure._asdict().items()},
        "total": format_credits(exposure.total),
    }
