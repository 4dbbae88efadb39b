"""Calls about limits, budgets and quotas: documents kept for an account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gpucredits.client.call import Call, account_path, body_of, read, write
from gpucredits.wire.policy import PolicyAnswer, PolicyRequest

PolicyKind = Literal["limits", "budgets", "quotas"]


def policy(account: str, kind: PolicyKind) -> Call[PolicyAnswer]:
    """The limits, budgets or quotas kept for an account."""
    return read(account_path(account, f"/{kind}"), PolicyAnswer)


def set_policy(
    account: str,
    kind: PolicyKind,
    settings: Mapping[str, Any],
    *,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PolicyAnswer]:
    """Replace the limits, budgets or quotas kept for an account."""
    return write(
        account_path(account, f"/{kind}"),
        PolicyAnswer,
        body=body_of(PolicyRequest, settings=settings),
        key=key,
        dry_run=dry_run,
        method="PUT",
    )
