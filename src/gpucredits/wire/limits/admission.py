"""Explanations on the wire: what a reserve would be told now."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from gpucredits.core.money import count_credits, format_credits
from gpucredits.core.outcome import Explained, Funder
from gpucredits.core.reasons import Refused
from gpucredits.wire.documented import ACCOUNT, FUNDING, GPU_COUNT, doc
from gpucredits.wire.gate import GateAnswer, gates_to_wire
from gpucredits.wire.ledger.account import FundingName, funding_name
from gpucredits.wire.ledger.correction import PaidLot, lot_to_wire
from gpucredits.wire.ledger.reservation import (
    HourRateText,
    RateText,
    format_hour_rate,
    format_price_id,
    format_rate,
)
from gpucredits.wire.scalars import CreditsText, Gpus, InstantText, format_instant, gpus_to_wire
from gpucredits.wire.words import RefusalReason


class FunderAnswer(Struct, kw_only=True):
    """An account that may pay for a job, and whether it can hold the job's first window.

    An account that the caller's key does not see is ``an account above`` and shows ``clears_at``
    only.
    """

    account: Annotated[str, doc("An account that may pay.")]
    funding: Annotated[FundingName | None, FUNDING]
    spendable: Annotated[
        CreditsText | None, doc("Credits of its own that the account can spend now.")
    ]
    can_pay: Annotated[bool | None, doc("Whether the account can hold the first window now.")]
    clears_at: Annotated[
        InstantText | None,
        doc("When the account could hold the window; null if it can, or if unknown."),
    ]


class AdmissionAnswer(Struct, kw_only=True):
    """Whether a request would be admitted now, from which grants at what price, by every gate.

    ``status`` and ``reason`` are those that a reserve would get. A request that is refused before
    has no price, payer or gates. ``gpu_count`` is how many GPUs it would get, which with
    ``allow_partial`` may be fewer than were asked for. ``funders`` are the accounts that may pay,
    nearest first: the first one that can hold the window pays.
    """

    admitted: Annotated[bool, doc("Whether the job would be admitted now.")]
    status: Annotated[int, doc("The HTTP status that a reserve would get.")]
    reason: Annotated[
        RefusalReason | None,
        doc("The reason for which a reserve would be refused; null if admitted."),
    ]
    detail: Annotated[str, doc("What the job would be told, in words.")]
    account: Annotated[str, ACCOUNT]
    gpu_count: Annotated[Gpus | None, GPU_COUNT]
    payer: Annotated[
        str | None, doc("The account that would pay, or comes closest; null if unknown.")
    ]
    price: Annotated[CreditsText | None, doc("Credits per GPU-hour.")]
    price_id: Annotated[str | None, doc("The pinned version of the price; null if there is none.")]
    rate_per_second: Annotated[
        RateText | None, doc("The job's cost per second, cut after 12 decimals.")
    ]
    rate_per_hour: Annotated[HourRateText | None, doc("The job's exact cost per hour.")]
    held: Annotated[CreditsText | None, doc("Credits that would be held for the first window.")]
    expires_in_ms: Annotated[int | None, doc("How long the first lease would last.")]
    clears_at: Annotated[
        InstantText | None,
        doc("When the gate would pass if nothing else changed; null if unknown."),
    ]
    grants: Annotated[list[PaidLot], doc("Credits that would be held, by grant.")]
    gates: Annotated[
        list[GateAnswer],
        doc("The verdict of every gate at every scope, including gates that pass."),
    ]
    funders: Annotated[list[FunderAnswer], doc("The accounts that may pay, nearest first.")]


def explained_to_wire(
    org_id: int, outcome: Explained, *, milli_gpus: int, status: int
) -> AdmissionAnswer:
    """The explanation of a request that every gate was asked about."""
    refused = outcome.refusal
    rate = outcome.price * milli_gpus
    clears_at = refused.detail.get("clears_at") if refused else None
    return AdmissionAnswer(
        admitted=refused is None,
        status=status,
        reason=refused.reason.value if refused else None,
        detail=refused.message if refused else _admitted(outcome),
        account=outcome.account,
        gpu_count=gpus_to_wire(milli_gpus),
        payer=outcome.payer,
        price=format_credits(outcome.price),
        price_id=format_price_id(outcome.price_id),
        rate_per_second=format_rate(rate),
        rate_per_hour=format_hour_rate(rate),
        held=format_credits(outcome.hold),
        expires_in_ms=outcome.lease_ms,
        clears_at=format_instant(clears_at) if isinstance(clears_at, int) else None,
        grants=[lot_to_wire(org_id, grant_id, amount) for grant_id, amount in outcome.lots],
        gates=gates_to_wire(outcome.reports),
        funders=[funder_to_wire(each) for each in outcome.funders],
    )


def refused_to_wire(account: str, refused: Refused, *, status: int) -> AdmissionAnswer:
    """The explanation of a request that was refused before it got to the gates."""
    return AdmissionAnswer(
        admitted=False,
        status=status,
        reason=refused.reason.value,
        detail=refused.message,
        account=account,
        gpu_count=None,
        payer=None,
        price=None,
        price_id=None,
        rate_per_second=None,
        rate_per_hour=None,
        held=None,
        expires_in_ms=None,
        clears_at=None,
        grants=[],
        gates=gates_to_wire(refused.reports),
        funders=[],
    )


def funder_to_wire(funder: Funder) -> FunderAnswer:
    """An account that may pay, as it is shown."""
    return FunderAnswer(
        account=funder.account,
        funding=funding_name(funder.funding),
        spendable=format_credits(funder.spendable),
        can_pay=funder.can_pay,
        clears_at=None if funder.clears_at is None else format_instant(funder.clears_at),
    )


def _admitted(outcome: Explained) -> str:
    return (
        f"{outcome.account} would be admitted: {count_credits(outcome.hold)} of "
        f"{outcome.payer} would be held."
    )
