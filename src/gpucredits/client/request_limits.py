"""Calls about limits on requests, of keys and of whole orgs."""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.client.call import Call, Setting, account_path, item_path, read, write
from gpucredits.wire.request_limit import (
    RequestLimitAnswer,
    RequestLimitChange,
    RequestLimitRequest,
)


def key_limit(key_id: str) -> Call[RequestLimitAnswer]:
    """The request limit in force for a key."""
    return read(_of_key(key_id), RequestLimitAnswer)


def set_key_limit(
    key_id: str,
    *,
    refill_per_second: int | None = None,
    refill_per_hour: int | None = None,
    capacity: int | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestLimitAnswer]:
    """Change what is given of a key's request limit; the rest stays."""
    fields = {
        "refill_per_second": refill_per_second,
        "refill_per_hour": refill_per_hour,
        "capacity": capacity,
    }
    how = Setting(replace=replace, clear=clear)
    return how.call(
        _of_key(key_id),
        RequestLimitAnswer,
        change=RequestLimitChange,
        whole=RequestLimitRequest,
        fields=fields,
        key=key,
        dry_run=dry_run,
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
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestLimitAnswer]:
    """Change what is given of the limit on all keys of an org together; the rest stays."""
    fields = {
        "refill_per_second": refill_per_second,
        "refill_per_hour": refill_per_hour,
        "capacity": capacity,
    }
    how = Setting(replace=replace, clear=clear)
    return how.call(
        _of_org(org),
        RequestLimitAnswer,
        change=RequestLimitChange,
        whole=RequestLimitRequest,
        fields=fields,
        key=key,
        dry_run=dry_run,
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
