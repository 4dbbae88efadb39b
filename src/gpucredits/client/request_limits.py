"""Calls about limits on requests, of keys and of whole orgs."""

from __future__ import annotations

from gpucredits.client.call import Call, account_path, body_of, item_path, read, write
from gpucredits.wire.request_limit import RequestLimitAnswer, RequestLimitRequest


def key_limit(key_id: str) -> Call[RequestLimitAnswer]:
    """The request limit in force for a key."""
    return read(_of_key(key_id), RequestLimitAnswer)


def set_key_limit(
    key_id: str,
    *,
    refill_per_second: int | None = None,
    refill_per_hour: int | None = None,
    capacity: int | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestLimitAnswer]:
    """Set a key's request limit; the speed by the second or by the hour."""
    body = body_of(
        RequestLimitRequest,
        refill_per_second=refill_per_second,
        refill_per_hour=refill_per_hour,
        capacity=capacity,
    )
    return write(
        _of_key(key_id), RequestLimitAnswer, body=body, key=key, dry_run=dry_run, method="PUT"
    )


def end_key_limit(
    key_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestLimitAnswer]:
    """End a key's own request limit: the server's default holds again."""
    return write(_of_key(key_id), RequestLimitAnswer, key=key, dry_run=dry_run, method="DELETE")


def org_request_limit(org: str) -> Call[RequestLimitAnswer]:
    """The limit on the requests of all keys of an org together."""
    return read(_of_org(org), RequestLimitAnswer)


def set_org_request_limit(
    org: str,
    *,
    refill_per_second: int | None = None,
    refill_per_hour: int | None = None,
    capacity: int | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestLimitAnswer]:
    """Set the limit on the requests of all keys of an org together."""
    body = body_of(
        RequestLimitRequest,
        refill_per_second=refill_per_second,
        refill_per_hour=refill_per_hour,
        capacity=capacity,
    )
    return write(
        _of_org(org), RequestLimitAnswer, body=body, key=key, dry_run=dry_run, method="PUT"
    )


def end_org_request_limit(
    org: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestLimitAnswer]:
    """End an org's own request limit: the server's default holds again."""
    return write(_of_org(org), RequestLimitAnswer, key=key, dry_run=dry_run, method="DELETE")


def _of_key(key_id: str) -> str:
    return item_path("keys", key_id, "/limit")


def _of_org(org: str) -> str:
    return account_path(org, "/request-limit")
