"""Calls about use: reporting what was measured, reading what was paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpucredits.client.call import Call, When, account_path, body_of, read, write
from gpucredits.wire.usage import GroupingName, UsagePage, UsageRequest, UsageResults


def report_usage(
    events: Sequence[Mapping[str, Any]], *, node: str | None = None
) -> Call[UsageResults]:
    """What a node measured: ``reservation_id``, ``seq``, ``start_ms`` and ``end_ms`` of each.

    An event is safe to repeat by its seq, so there is no key.
    """
    body = body_of(UsageRequest, events=list(events), node=node)
    return write("/v1/usage", UsageResults, body=body, is_keyed=False)


def usage_page(
    account: str,
    *,
    since: When | None = None,
    until: When | None = None,
    by: GroupingName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[UsagePage]:
    """A page of what an account and everything below it paid for, in groups, and its leases.

    ``total`` is what was paid for from ``since`` until ``until`` in all, whatever the page shows.
    """
    return read(
        account_path(account, "/usage"),
        UsagePage,
        since=since,
        until=until,
        by=by,
        cursor=cursor,
        limit=limit,
    )
