"""Calls about quotas: how much an account may run at once, or spend in a window or on a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gpucredits.client.call import Call, Number, account_path, body_of, read, write
from gpucredits.client.errors import Invalid
from gpucredits.wire.quota import (
    CalendarName,
    DimensionName,
    QuotaRequest,
    QuotasAnswer,
    QuotasRequest,
    QuotasTerms,
    QuotaTerms,
)


def quotas(account: str) -> Call[QuotasAnswer]:
    """The quotas of an account and how they stand."""
    return read(account_path(account, "/quotas"), QuotasAnswer)


def set_quota(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    dimension: DimensionName,
    limit: Number,
    *,
    gpu_type: str | None = None,
    calendar: CalendarName | None = None,
    zone: str | None = None,
    rolling_hours: int | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[QuotaTerms]:
    """Set a limit; a quota that is the same in everything else gets the new limit."""
    body = body_of(
        QuotaRequest,
        dimension=dimension,
        limit=limit,
        gpu_type=gpu_type,
        calendar=calendar,
        zone=zone,
        rolling_hours=rolling_hours,
    )
    return write(account_path(account, "/quotas"), QuotaTerms, body=body, key=key, dry_run=dry_run)


def replace_quotas(
    account: str,
    quotas: Sequence[Mapping[str, Any]],
    *,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[QuotasTerms]:
    """Let an account have these quotas and no others; each has ``set_quota``'s fields."""
    return write(
        account_path(account, "/quotas"),
        QuotasTerms,
        body=body_of(QuotasRequest, quotas=list(quotas)),
        key=key,
        dry_run=dry_run,
        method="PUT",
    )


def end_quota(
    account: str, quota_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[QuotaTerms]:
    """Take a quota away."""
    if not quota_id:
        raise Invalid("must not be empty", field="quota_id")
    path = account_path(account, f"/quotas/{quote(quota_id, safe='')}")
    return write(path, QuotaTerms, key=key, dry_run=dry_run, method="DELETE")
