"""Budget requests on the wire: asking for more, and deciding."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from gpucredits.core import bounds, ids
from gpucredits.core.gate import quantity_of
from gpucredits.core.request import (
    GATE_UNITS,
    BudgetRequest,
    RequestKind,
    RequestState,
    RequestTerms,
    RequestUnit,
)
from gpucredits.wire.documented import ACCOUNT, AMOUNT, NEXT_CURSOR, STATE, UNIT, doc
from gpucredits.wire.scalars import (
    AccountPath,
    Amount,
    Credits,
    CreditsText,
    Instant,
    InstantText,
    Name,
    Note,
    format_end,
    format_instant,
)

RequestKindName = Literal["credits", "quota", "rate_limit", "budget"]
RequestStateName = Literal["open", "approving", "approved", "declined", "canceled", "expired"]
UnitName = Literal["credits", "GPUs", "jobs"]

KINDS: dict[RequestKindName, RequestKind] = {
    "credits": RequestKind.CREDITS,
    "quota": RequestKind.QUOTA,
    "rate_limit": RequestKind.RATE_LIMIT,
    "budget": RequestKind.BUDGET,
}
STATES: dict[RequestStateName, RequestState] = {
    "open": RequestState.OPEN,
    "approving": RequestState.APPROVING,
    "approved": RequestState.APPROVED,
    "declined": RequestState.DECLINED,
    "canceled": RequestState.CANCELED,
    "expired": RequestState.EXPIRED,
}
_KIND_NAMES = {kind: name for name, kind in KINDS.items()}
_STATE_NAMES = {state: name for name, state in STATES.items()}
_UNITS: dict[RequestUnit, UnitName] = {
    RequestUnit.CREDITS: "credits",
    RequestUnit.GPUS: "GPUs",
    RequestUnit.JOBS: "jobs",
}


class AskRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Ask for more: credits, a boost of a quota or of the rate limit until ``ends_at``, a budget.

    ``amount`` is the increase; for a budget, the new allowance. For a quota on GPUs or jobs it is a
    whole number.
    """

    account: Annotated[AccountPath, ACCOUNT]
    kind: Annotated[RequestKindName, doc("The kind of increase.")]
    amount: Annotated[
        Amount, doc("How much more, in the quota's unit; for a budget, the new allowance.")
    ]
    reason: Annotated[Note, doc("Why the increase is needed.")]
    ends_at: Annotated[
        Instant | None, doc("Until when the increase is needed; a boost must have an end.")
    ] = None
    quota_id: Annotated[Name | None, doc("The quota to raise; for kind quota.")] = None
    refill_per_hour: Annotated[
        Credits | None, doc("The increase of the refill; for kind rate_limit.")
    ] = None
    budget: Annotated[Name | None, doc("The name of the budget; for kind budget.")] = None


class ApproveRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Approve, with other numbers where they are given.

    With ``take_from`` credits are moved from that account of the org, in place of new ones; they
    keep their own windows.
    """

    amount: Annotated[
        Amount | None, doc("The approved amount, if it differs from the one asked for.")
    ] = None
    refill_per_hour: Annotated[
        Credits | None, doc("The approved refill, if it differs from the one asked for.")
    ] = None
    ends_at: Annotated[
        Instant | None, doc("The approved end, if it differs from the one asked for.")
    ] = None
    take_from: Annotated[
        AccountPath | None, doc("Take the credits from this account instead of making new ones.")
    ] = None
    note: Annotated[Note | None, doc("A remark for the requester.")] = None


class DeclineRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Decline, and say why."""

    note: Annotated[Note, doc("The reason, for the requester.")]


class TermsAnswer(Struct, kw_only=True):
    """How much, how fast more of it comes, and until when."""

    amount: Annotated[CreditsText, AMOUNT]
    refill_per_hour: Annotated[
        CreditsText | None, doc("The increase of the refill; null if there is none.")
    ]
    ends_at: Annotated[InstantText | None, doc("The end; null or absent if there is none.")]


class RequestAnswer(Struct, kw_only=True):
    """A request with its state; ``result`` is the id of what its approval has made."""

    request_id: Annotated[str, doc("The id of the request.")]
    account: Annotated[str, ACCOUNT]
    kind: Annotated[RequestKindName, doc("The kind of increase.")]
    unit: Annotated[UnitName, UNIT]
    quota_id: Annotated[
        str | None, doc("The id of the quota; null if the request is not about a quota.")
    ]
    budget: Annotated[
        str | None, doc("The name of the budget; null if the request is not about a budget.")
    ]
    asked: Annotated[TermsAnswer, doc("The terms that were asked for.")]
    reason: Annotated[str, doc("Why the increase is needed, in the requester's words.")]
    state: Annotated[RequestStateName, STATE]
    asked_by: Annotated[str, doc("The key that made the request.")]
    asked_at: Annotated[InstantText, doc("When the request was made.")]
    expires_at: Annotated[InstantText, doc("Until when the request can be decided.")]
    decided_by: Annotated[str | None, doc("The key that decided; null until then.")]
    decided_at: Annotated[InstantText | None, doc("When the request was decided; null until then.")]
    note: Annotated[str, doc("The remark of whoever decided; empty if there is none.")]
    approved: Annotated[
        TermsAnswer | None,
        doc(
            "The terms that were approved, which may differ from those asked for; null until then."
        ),
    ]
    taken_from: Annotated[
        str | None, doc("The account that the credits came from; null if new ones were made.")
    ]
    result: Annotated[str | None, doc("The id of what the approval made; null until then.")]


class RequestPage(Struct, kw_only=True):
    """Requests, the latest first."""

    requests: Annotated[list[RequestAnswer], doc("The requests of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


def asked_terms(body: AskRequest) -> RequestTerms:
    """What is asked for."""
    return RequestTerms(
        amount=int(body.amount),
        refill_per_hour=int(body.refill_per_hour or 0),
        ends_at=bounds.NEVER_US if body.ends_at is None else int(body.ends_at),
    )


def given_terms(body: ApproveRequest, row: BudgetRequest) -> RequestTerms:
    """What is approved: what was asked for, but for what is given.

    Credits that move keep their windows, whatever end was asked for.
    """
    asked = row.asked
    ends_at = asked.ends_at if body.ends_at is None else int(body.ends_at)
    amount = asked.amount if body.amount is None else amount_of(row.unit, body.amount)
    refill = body.refill_per_hour
    return RequestTerms(
        amount=amount,
        refill_per_hour=asked.refill_per_hour if refill is None else int(refill),
        ends_at=ends_at if body.take_from is None else bounds.NEVER_US,
        taken_from=str(body.take_from or ""),
    )


def amount_of(unit: RequestUnit, amount: Amount) -> int:
    """An amount in its unit; ValueError when it is finer than the unit can be."""
    return quantity_of(amount, GATE_UNITS[unit])


def request_to_wire(row: BudgetRequest) -> RequestAnswer:
    """The request as it is shown."""
    is_quota = row.kind is RequestKind.QUOTA
    return RequestAnswer(
        request_id=ids.format_id(ids.REQUEST, row.org_id, row.request_id),
        account=row.account,
        kind=_KIND_NAMES[row.kind],
        unit=_UNITS[row.unit],
        quota_id=ids.format_id(ids.QUOTA, row.org_id, row.target_id) if is_quota else None,
        budget=row.budget or None,
        asked=_terms_to_wire(row, row.asked),
        reason=row.reason,
        state=_STATE_NAMES[row.state],
        asked_by=row.asked_by,
        asked_at=format_instant(row.asked_at),
        expires_at=format_instant(row.expires_at),
        decided_by=row.decided_by or None,
        decided_at=format_instant(row.decided_at) if row.decided_at else None,
        note=row.note,
        approved=_terms_to_wire(row, row.given)
        if row.state in (RequestState.APPROVING, RequestState.APPROVED)
        else None,
        taken_from=row.taken_from or None,
        result=row.result or None,
    )


def _terms_to_wire(row: BudgetRequest, terms: RequestTerms) -> TermsAnswer:
    has_refill = row.kind is RequestKind.RATE_LIMIT
    return TermsAnswer(
        amount=row.shown(terms.amount),
        refill_per_hour=row.shown(terms.refill_per_hour) if has_refill else None,
        ends_at=format_end(terms.ends_at),
    )
