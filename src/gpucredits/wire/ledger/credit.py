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
from gpucredits.wire.documented import (
    ACCOUNT,
    AMOUNT,
    ATOMIC,
    CREATED_AT,
    GRANT_ID,
    METADATA,
    NEXT_CURSOR,
    PAYMENT_REFERENCE,
    PRIORITY,
    RESULTS,
    SOURCE,
    STATUS,
    TARGET,
    doc,
)
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

    account: Annotated[AccountPath, ACCOUNT]
    amount: Annotated[Amount, AMOUNT]
    starts_at: Annotated[
        Instant | None, doc("When the credits become valid; now unless given, or if in the past.")
    ] = None
    expires_at: Annotated[Instant | None, doc("When the credits expire; absent means never.")] = (
        None
    )
    priority: Annotated[Priority, PRIORITY] = bounds.PRIORITY_DEFAULT
    source: Annotated[Literal["allowance", "promo"], doc("Where the credits come from.")] = (
        "allowance"
    )
    metadata: Annotated[Metadata | None, METADATA] = None


class IssueBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Many grants, of any orgs; ``atomic``: of one org, all or nothing."""

    items: Annotated[
        list[IssueRequest],
        Meta(min_length=1, max_length=BATCH_ITEMS_MAX),
        doc("The items, in order."),
    ]
    atomic: Annotated[bool, ATOMIC] = False


class GrantAnswer(Struct, kw_only=True):
    """A lot of credits and what remains of it."""

    grant_id: Annotated[str, doc("The id of the grant.")]
    account: Annotated[str, ACCOUNT]
    amount: Annotated[CreditsText, doc("Credits that the grant held at first.")]
    remaining: Annotated[CreditsText, doc("Credits that the grant still holds.")]
    starts_at: Annotated[InstantText, doc("When the grant becomes valid.")]
    expires_at: Annotated[InstantText | None, doc("When the grant expires; null if it never does.")]
    priority: Annotated[int, doc("Lower is used first.")]
    source: Annotated[SourceName, doc("Where the credits come from.")]
    state: Annotated[
        GrantStateName, doc("The state. held_over: ended, and kept for claims of live leases.")
    ]
    origin_grant_id: Annotated[
        str | None, doc("The grant from which a transfer took this one; null if there is none.")
    ]
    created_at: Annotated[InstantText, CREATED_AT]
    metadata: Annotated[dict[str, str], METADATA]


class GrantPage(Struct, kw_only=True):
    """The grants of an account in the order they are consumed, ended ones last."""

    grants: Annotated[list[GrantAnswer], doc("The grants, in the order they are used.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class IssueResult(Struct, kw_only=True, omit_defaults=True):
    """One item of a batch: the grant, or why not."""

    status: Annotated[int, doc("The HTTP status that this item alone would get.")]
    grant: Annotated[GrantAnswer | None, doc("The grant that was made.")] = None
    problem: Annotated[Problem | None, doc("Why the item failed.")] = None


class IssueResults(Struct, kw_only=True):
    """One result for each item, in order."""

    results: Annotated[list[IssueResult], RESULTS]


class TopUpRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Record a payment; only a confirmed one makes a grant."""

    account: Annotated[AccountPath, ACCOUNT]
    amount: Annotated[Amount, AMOUNT]
    payment_reference: Annotated[Name, PAYMENT_REFERENCE]
    status: Annotated[
        Literal["pending", "confirmed"],
        doc("confirmed: the payment has arrived, and the credits are granted at once."),
    ] = "pending"
    expires_at: Annotated[Instant | None, doc("When the credits expire; absent means never.")] = (
        None
    )
    priority: Annotated[Priority, PRIORITY] = bounds.PRIORITY_DEFAULT
    metadata: Annotated[Metadata | None, METADATA] = None


class TopUpAnswer(Struct, kw_only=True):
    """A payment and the grant it made, if any."""

    topup_id: Annotated[str, doc("The id of the top-up.")]
    account: Annotated[str, ACCOUNT]
    amount: Annotated[CreditsText, doc("Credits that the payment is for.")]
    payment_reference: Annotated[str, PAYMENT_REFERENCE]
    status: Annotated[TopUpStatusName, STATUS]
    grant_id: Annotated[str | None, GRANT_ID]
    expires_at: Annotated[InstantText | None, doc("When the credits expire; null if never.")]
    created_at: Annotated[InstantText, CREATED_AT]
    metadata: Annotated[dict[str, str], METADATA]


class TopUpPage(Struct, kw_only=True):
    """Top-ups, the latest first."""

    topups: Annotated[list[TopUpAnswer], doc("The top-ups of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class TransferRequest(
    Struct, kw_only=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """Move unheld credits between two accounts of one org."""

    source: Annotated[AccountPath, SOURCE]
    target: Annotated[AccountPath, TARGET]
    amount: Annotated[Amount, AMOUNT]
    metadata: Annotated[Metadata | None, METADATA] = None


class MovedLot(Struct, kw_only=True):
    """A part of a transfer: the grant it left and the grant it arrived in."""

    from_grant_id: Annotated[str, doc("The grant that the credits left.")]
    to_grant_id: Annotated[str, doc("The grant that the credits arrived in.")]
    amount: Annotated[CreditsText, AMOUNT]


class TransferAnswer(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """What moved, lot by lot."""

    transfer_id: Annotated[str, doc("The id of the transfer.")]
    source: Annotated[str, SOURCE]
    target: Annotated[str, TARGET]
    amount: Annotated[CreditsText, AMOUNT]
    lots: Annotated[list[MovedLot], doc("The parts, one for each grant.")]
    metadata: Annotated[dict[str, str], METADATA]


class TransferShown(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """What moved between which accounts, and when; its lots are entries of type transfer."""

    transfer_id: Annotated[str, doc("The id of the transfer.")]
    source: Annotated[str, SOURCE]
    target: Annotated[str, TARGET]
    amount: Annotated[CreditsText, AMOUNT]
    metadata: Annotated[dict[str, str], METADATA]
    at: Annotated[InstantText, doc("When the credits moved.")]


class TransferPage(Struct, kw_only=True):
    """Transfers, the latest first."""

    transfers: Annotated[list[TransferShown], doc("The transfers of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


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
