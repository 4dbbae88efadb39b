"""Calls about budget requests: ask, decide, cancel."""

from __future__ import annotations

from gpucredits.client.call import Call, Number, When, body_of, item_path, read, write
from gpucredits.wire.request import (
    ApproveRequest,
    AskRequest,
    DeclineRequest,
    RequestAnswer,
    RequestKindName,
    RequestPage,
    RequestStateName,
)


def ask(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    kind: RequestKindName,
    amount: Number,
    *,
    reason: str,
    ends_at: When | None = None,
    quota_id: str | None = None,
    refill_per_hour: Number | None = None,
    budget: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestAnswer]:
    """Ask for more credits, for a boost of a quota or of the rate limit, or for a budget."""
    body = body_of(
        AskRequest,
        account=account,
        kind=kind,
        amount=amount,
        reason=reason,
        ends_at=ends_at,
        quota_id=quota_id,
        refill_per_hour=refill_per_hour,
        budget=budget,
    )
    return write("/v1/requests", RequestAnswer, body=body, key=key, dry_run=dry_run)


def request(request_id: str) -> Call[RequestAnswer]:
    """One request."""
    return read(item_path("requests", request_id), RequestAnswer)


def request_page(
    account: str | None = None,
    *,
    state: RequestStateName | None = None,
    kind: RequestKindName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[RequestPage]:
    """A page of the requests of an account and all below it, the latest first."""
    return read(
        "/v1/requests",
        RequestPage,
        account=account,
        state=state,
        kind=kind,
        cursor=cursor,
        limit=limit,
    )


def approve_request(  # one argument for each field of the request
    request_id: str,
    *,
    amount: Number | None = None,
    refill_per_hour: Number | None = None,
    ends_at: When | None = None,
    take_from: str | None = None,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestAnswer]:
    """Approve a request, with other numbers where they are given, and do what it asks for."""
    body = body_of(
        ApproveRequest,
        amount=amount,
        refill_per_hour=refill_per_hour,
        ends_at=ends_at,
        take_from=take_from,
        note=note,
    )
    path = item_path("requests", request_id, ":approve")
    return write(path, RequestAnswer, body=body, key=key, dry_run=dry_run)


def decline_request(
    request_id: str, note: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestAnswer]:
    """Decline a request, and say why."""
    path = item_path("requests", request_id, ":decline")
    body = body_of(DeclineRequest, note=note)
    return write(path, RequestAnswer, body=body, key=key, dry_run=dry_run)


def cancel_request(
    request_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestAnswer]:
    """Take back what one has asked for."""
    path = item_path("requests", request_id, ":cancel")
    return write(path, RequestAnswer, key=key, dry_run=dry_run)
