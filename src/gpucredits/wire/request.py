"""Budget requests on the wire: asking for more, and deciding."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpucredits.core import bounds, ids
from gpucredits.core.request import (
    BudgetRequest,
    RequestKind,
    RequestState,
    RequestTerms,
    RequestUnit,
)
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

    ``amount`` is what comes on top; of a budget it is the new allowance. For a quota on GPUs or
    jobs it is a whole number of them.
    """

    account: AccountPath
    kind: RequestKindName
    amount: Amount
    reason: Note
    ends_at: Instant | None = None
    quota_id: Name | None = None
    refill_per_hour: Credits | None = None
    budget: Name | None = None


class ApproveRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Approve, with other numbers where they are given.

    With ``take_from`` credits are moved from that account of the org, in place of new ones; they
    keep their own windows.
    """

    amount: Amount | None = None
    refill_per_hour: Credits | None = None
    ends_at: Instant | None = None
    take_from: AccountPath | None = None
    note: Note | None = None


class DeclineRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Decline, and say why."""

    note: Note


class TermsAnswer(Struct, kw_only=True):
    """How much, how fast more of it comes, and until when."""

    amount: CreditsText
    refill_per_hour: CreditsText | None
    ends_at: InstantText | None


class RequestAnswer(Struct, kw_only=True):
    """A request as it stands; ``result`` is the id of what its approval made."""

    request_id: str
    account: str
    kind: RequestKindName
    unit: UnitName
    quota_id: str | None
    budget: str | None
    asked: TermsAnswer
    reason: str
    state: RequestStateName
    asked_by: str
    asked_at: InstantText
    expires_at: InstantText
    decided_by: str | None
    decided_at: InstantText | None
    note: str
    approved: TermsAnswer | None
    taken_from: str | None
    result: str | None


class RequestPage(Struct, kw_only=True):
    """Requests, the latest first."""

    requests: list[RequestAnswer]
    next_cursor: str | None = None


def asked_terms(body: AskRequest) -> RequestTerms:
    """What is asked for."""
    return RequestTerms(
        amount=int(body.amount),
        refill_per_hour=int(body.refill_per_hour or 0),
        ends_at=bounds.NEVER_US if body.ends_at is None else int(body.ends_at),
    )


def given_terms(body: ApproveRequest, row: BudgetRequest) -> RequestTerms:
    """What is approved: what was asked for, but for what is given."""
    asked = row.asked
    amount = asked.amount if body.amount is None else amount_of(row.unit, body.amount)
    refill = body.refill_per_hour
    return RequestTerms(
        amount=amount,
        refill_per_hour=asked.refill_per_hour if refill is None else int(refill),
        ends_at=asked.ends_at if body.ends_at is None else int(body.ends_at),
        taken_from=str(body.take_from or ""),
    )


def amount_of(unit: RequestUnit, amount: Amount) -> int:
    """An amount in its unit; ValueError when it must be whole and is not."""
    if unit is RequestUnit.CREDITS:
        return int(amount)
    number, rest = divmod(int(amount), 1_000_000)
    if rest:
        raise ValueError(f"must be a whole number of {_UNITS[unit]}")
    return number


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
