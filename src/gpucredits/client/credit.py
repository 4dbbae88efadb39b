"""Calls about credits: issue, top-up, transfer, and the grants they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gpucredits.client.call import Call, Number, When, body_of, item_path, read, write
from gpucredits.wire.credit import (
    GrantAnswer,
    GrantPage,
    IssueBatch,
    IssueRequest,
    IssueResults,
    TopUpAnswer,
    TopUpPage,
    TopUpRequest,
    TopUpStatusName,
    TransferAnswer,
    TransferRequest,
)


def issue(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    amount: Number,
    *,
    starts_at: When | None = None,
    expires_at: When | None = None,
    priority: int | None = None,
    source: Literal["allowance", "promo"] | None = None,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[GrantAnswer]:
    """Grant credits, valid on [starts_at, expires_at)."""
    body = body_of(
        IssueRequest,
        account=account,
        amount=amount,
        starts_at=starts_at,
        expires_at=expires_at,
        priority=priority,
        source=source,
        metadata=metadata,
    )
    return write("/v1/credits/issue", GrantAnswer, body=body, key=key, dry_run=dry_run)


def issue_all(
    items: Sequence[Mapping[str, Any]],
    *,
    atomic: bool = False,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[IssueResults]:
    """Make many grants; each item has the fields of ``issue``. ``atomic``: all or nothing."""
    body = body_of(IssueBatch, items=list(items), atomic=atomic)
    return write("/v1/credits/issue:batch", IssueResults, body=body, key=key, dry_run=dry_run)


def grant_page(
    account: str | None = None,
    *,
    tree: bool | None = None,
    open: bool | None = None,  # noqa: A002  # the field's name on the wire
    metadata: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[GrantPage]:
    """A page of an account's grants, or of its whole tree's; ``open``: only those not ended."""
    return read(
        "/v1/grants",
        GrantPage,
        account=account,
        tree=tree,
        open=open,
        metadata=metadata,
        cursor=cursor,
        limit=limit,
    )


def grant(grant_id: str) -> Call[GrantAnswer]:
    """One grant and what remains of it."""
    return read(item_path("grants", grant_id), GrantAnswer)


def create_topup(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    amount: Number,
    *,
    payment_reference: str,
    status: Literal["pending", "confirmed"] | None = None,
    expires_at: When | None = None,
    priority: int | None = None,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[TopUpAnswer]:
    """Record a payment; only a confirmed one makes a grant."""
    body = body_of(
        TopUpRequest,
        account=account,
        amount=amount,
        payment_reference=payment_reference,
        status=status,
        expires_at=expires_at,
        priority=priority,
        metadata=metadata,
    )
    return write("/v1/topups", TopUpAnswer, body=body, key=key, dry_run=dry_run)


def topup(topup_id: str) -> Call[TopUpAnswer]:
    """One payment."""
    return read(item_path("topups", topup_id), TopUpAnswer)


def topup_page(
    account: str | None = None,
    *,
    tree: bool | None = None,
    status: TopUpStatusName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[TopUpPage]:
    """A page of an account's payments, the latest first."""
    return read(
        "/v1/topups",
        TopUpPage,
        account=account,
        tree=tree,
        status=status,
        cursor=cursor,
        limit=limit,
    )


def confirm_topup(
    topup_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[TopUpAnswer]:
    """The payment arrived: make its grant."""
    return write(item_path("topups", topup_id, ":confirm"), TopUpAnswer, key=key, dry_run=dry_run)


def fail_topup(
    topup_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[TopUpAnswer]:
    """The payment will not arrive."""
    return write(item_path("topups", topup_id, ":fail"), TopUpAnswer, key=key, dry_run=dry_run)


def reverse_topup(
    topup_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[TopUpAnswer]:
    """The payment was taken back; what was spent of it becomes debt."""
    return write(item_path("topups", topup_id, ":reverse"), TopUpAnswer, key=key, dry_run=dry_run)


def transfer(
    source: str,
    target: str,
    amount: Number,
    *,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[TransferAnswer]:
    """Move unheld credits between two accounts of one org, in either direction."""
    fields = {"from": source, "to": target, "amount": amount, "metadata": metadata}
    body = body_of(TransferRequest, **fields)
    return write("/v1/credits/transfer", TransferAnswer, body=body, key=key, dry_run=dry_run)
