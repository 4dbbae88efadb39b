"""Credits coming in and moving: issue, top-up, transfer, and the grants they make."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.core import bounds, ids
from gpucredits.core.command import Issue, TopUp, Transfer
from gpucredits.core.grant import Grant, GrantState, Source
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Granted, ToppedUp, Transferred
from gpucredits.core.topup import TopUpStatus
from gpucredits.wire.problem import Problem
from gpucredits.wire.scalars import (
    AccountPath,
    Amount,
    CreditsText,
    Instant,
    InstantText,
    Metadata,
    Name,
    format_end,
    format_instant,
)

BATCH_ITEMS_MAX = 1_000

Priority = Annotated[int, Meta(ge=0, le=bounds.PRIORITY_MAX, description="Lower is used first.")]
SourceName = Literal["allowance", "promo", "topup", "transfer"]
TopUpStatusName = Literal["pending", "confirmed", "failed", "reversed"]
GrantStateName = Literal["held_over", "active", "pending", "ended"]

_SOURCES: dict[SourceName, Source] = {
    "allowance": Source.ALLOWANCE,
    "promo": Source.PROMO,
    "topup": Source.TOPUP,
    "transfer": Source.TRANSFER,
}
_SOURCE_NAMES: dict[Source, SourceName] = {source: name for name, source in _SOURCES.items()}
_GRANT_STATES: dict[GrantState, GrantStateName] = {
    GrantState.HELD_OVER: "held_over",
    GrantState.ACTIVE: "active",
    GrantState.PENDING: "pending",
    GrantState.ENDED: "ended",
}
_TOPUP_STATUSES: dict[TopUpStatus, TopUpStatusName] = {
    TopUpStatus.PENDING: "pending",
    TopUpStatus.CONFIRMED: "confirmed",
    TopUpStatus.FAILED: "failed",
    TopUpStatus.REVERSED: "reversed",
}


class IssueRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Grant credits to an account, valid on [starts_at, expires_at)."""

    account: AccountPath
    amount: Amount
    starts_at: Instant | None = None
    expires_at: Instant | None = None
    priority: Priority = bounds.PRIORITY_DEFAULT
    source: Literal["allowance", "promo"] = "allowance"
    metadata: Metadata | None = None


class IssueBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Many grants, of any orgs; ``atomic``: of one org, all or nothing."""

    items: Annotated[list[IssueRequest], Meta(min_length=1, max_length=BATCH_ITEMS_MAX)]
    atomic: bool = False


class GrantAnswer(Struct, kw_only=True):
    """A lot of credits and what remains of it."""

    grant_id: str
    account: str
    amount: CreditsText
    remaining: CreditsText
    starts_at: InstantText
    expires_at: InstantText | None
    priority: int
    source: SourceName
    state: GrantStateName
    origin_grant_id: str | None
    created_at: InstantText
    metadata: dict[str, str]


class GrantPage(Struct, kw_only=True):
    """The grants of an account in the order they are consumed, ended ones last."""

    grants: list[GrantAnswer]
    next_cursor: str | None = None


class IssueResult(Struct, kw_only=True, omit_defaults=True):
    """One item of a batch: the grant, or why not."""

    status: int
    grant: GrantAnswer | None = None
    problem: Problem | None = None


class IssueResults(Struct, kw_only=True):
    """One result for each item, in order."""

    results: list[IssueResult]


class TopUpRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Record a payment; only a confirmed one makes a grant."""

    account: AccountPath
    amount: Amount
    payment_reference: Name
    status: Literal["pending", "confirmed"] = "pending"
    expires_at: Instant | None = None
    priority: Priority = bounds.PRIORITY_DEFAULT
    metadata: Metadata | None = None


class TopUpAnswer(Struct, kw_only=True):
    """A payment and the grant it made, if any."""

    topup_id: str
    account: str
    amount: CreditsText
    payment_reference: str
    status: TopUpStatusName
    grant_id: str | None
    expires_at: InstantText | None
    created_at: InstantText
    metadata: dict[str, str]


class TopUpPage(Struct, kw_only=True):
    """Top-ups, the latest first."""

    topups: list[TopUpAnswer]
    next_cursor: str | None = None


class TransferRequest(
    Struct, kw_only=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """Move unheld credits between two accounts of one org."""

    source: AccountPath
    target: AccountPath
    amount: Amount
    metadata: Metadata | None = None


class MovedLot(Struct, kw_only=True):
    """A part of a transfer: the grant it left and the grant it arrived in."""

    from_grant_id: str
    to_grant_id: str
    amount: CreditsText


class TransferAnswer(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """What moved, lot by lot."""

    transfer_id: str
    source: str
    target: str
    amount: CreditsText
    lots: list[MovedLot]
    metadata: dict[str, str]


class TransferShown(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """What moved between which accounts, and when; its lots are entries of type transfer."""

    transfer_id: str
    source: str
    target: str
    amount: CreditsText
    metadata: dict[str, str]
    at: InstantText


class TransferPage(Struct, kw_only=True):
    """Transfers, the latest first."""

    transfers: list[TransferShown]
    next_cursor: str | None = None


def issue_from_wire(request: IssueRequest) -> Issue:
    """The core's command."""
    return Issue(
        account=str(request.account),
        amount=int(request.amount),
        starts_at=None if request.starts_at is None else int(request.starts_at),
        expires_at=bounds.NEVER_US if request.expires_at is None else int(request.expires_at),
        priority=request.priority,
        source=_SOURCES[request.source],
        metadata=dict(request.metadata or {}),
    )


def topup_from_wire(request: TopUpRequest) -> TopUp:
    """The core's command."""
    return TopUp(
        account=str(request.account),
        amount=int(request.amount),
        payment_reference=str(request.payment_reference),
        confirmed=request.status == "confirmed",
        expires_at=bounds.NEVER_US if request.expires_at is None else int(request.expires_at),
        priority=request.priority,
        metadata=dict(request.metadata or {}),
    )


def transfer_from_wire(request: TransferRequest) -> Transfer:
    """The core's command."""
    return Transfer(
        source=str(request.source),
        target=str(request.target),
        amount=int(request.amount),
        metadata=dict(request.metadata or {}),
    )


def grant_to_wire(org_id: int, grant: Grant, path: str) -> GrantAnswer:
    """The grant as it is shown."""
    origin = grant.origin_id
    return GrantAnswer(
        grant_id=ids.format_id(ids.GRANT, org_id, grant.grant_id),
        account=path,
        amount=format_credits(grant.amount),
        remaining=format_credits(grant.remaining),
        starts_at=format_instant(grant.starts_at),
        expires_at=format_end(grant.expires_at),
        priority=grant.priority,
        source=_SOURCE_NAMES[grant.source],
        state=_GRANT_STATES[grant.state],
        origin_grant_id=ids.format_id(ids.GRANT, org_id, origin) if origin else None,
        created_at=format_instant(grant.created_at),
        metadata=grant.metadata,
    )


def granted_to_wire(org_id: int, outcome: Granted) -> GrantAnswer:
    """The answer to an issue."""
    return grant_to_wire(org_id, outcome.grant, outcome.path)


def topup_to_wire(org_id: int, outcome: ToppedUp) -> TopUpAnswer:
    """The answer to a top-up and to what is done with it."""
    row = outcome.topup
    return TopUpAnswer(
        topup_id=ids.format_id(ids.TOPUP, org_id, row.topup_id),
        account=outcome.path,
        amount=format_credits(row.amount),
        payment_reference=row.payment_reference,
        status=_TOPUP_STATUSES[row.status],
        grant_id=ids.format_id(ids.GRANT, org_id, row.grant_id) if row.grant_id else None,
        expires_at=format_end(row.expires_at),
        created_at=format_instant(row.created_at),
        metadata=row.metadata,
    )


def transfer_to_wire(org_id: int, outcome: Transferred) -> TransferAnswer:
    """The answer to a transfer."""
    return TransferAnswer(
        transfer_id=ids.format_id(ids.TRANSFER, org_id, outcome.transfer_id),
        source=outcome.source,
        target=outcome.target,
        amount=format_credits(outcome.amount),
        lots=[
            MovedLot(
                from_grant_id=ids.format_id(ids.GRANT, org_id, left),
                to_grant_id=ids.format_id(ids.GRANT, org_id, arrived),
                amount=format_credits(amount),
            )
            for left, arrived, amount in outcome.lots
        ],
        metadata=outcome.metadata,
    )
