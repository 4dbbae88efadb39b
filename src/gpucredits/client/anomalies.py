"""Calls about unusual spending."""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.client.call import Call, Number, Setting, read
from gpucredits.wire.anomaly import (
    AnomalyPage,
    AnomalyTermsAnswer,
    AnomalyTermsChange,
    AnomalyTermsRequest,
)


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
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AnomalyTermsAnswer]:
    """Change what is given of when an hour's spending is unusual; the rest stays as it is.

    ``replace`` replaces all terms. ``clear`` names fields that go back to their defaults.
    """
    return Setting(replace=replace, clear=clear).call(
        "/v1/anomaly-terms",
        AnomalyTermsAnswer,
        change=AnomalyTermsChange,
        whole=AnomalyTermsRequest,
        fields={"ratio_percent": ratio_percent, "floor": floor, "auto_suspend": auto_suspend},
        about={"account": account},
        key=key,
        dry_run=dry_run,
    )
