"""Calls about unusual spending."""

from __future__ import annotations

from gpucredits.client.call import Call, Number, body_of, read, write
from gpucredits.wire.anomaly import AnomalyPage, AnomalyTermsAnswer, AnomalyTermsRequest


def anomaly_page(
    account: str | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[AnomalyPage]:
    """A page of unusual hours of an account and all below it, the latest first."""
    return read("/v1/anomalies", AnomalyPage, account=account, cursor=cursor, limit=limit)


def anomaly_terms(account: str) -> Call[AnomalyTermsAnswer]:
    """When an hour's spending of an account is unusual, and whether that suspends it."""
    return read("/v1/anomaly-terms", AnomalyTermsAnswer, account=account)


def set_anomaly_terms(
    account: str,
    *,
    ratio_percent: int | None = None,
    floor: Number | None = None,
    auto_suspend: bool | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AnomalyTermsAnswer]:
    """Say when an hour's spending of an account is unusual; what is None is the default."""
    body = body_of(
        AnomalyTermsRequest,
        account=account,
        ratio_percent=ratio_percent,
        floor=floor,
        auto_suspend=auto_suspend,
    )
    return write(
        "/v1/anomaly-terms",
        AnomalyTermsAnswer,
        body=body,
        key=key,
        dry_run=dry_run,
        method="PUT",
    )
