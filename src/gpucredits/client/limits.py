"""Calls about limits: the overview of an account's, and its credit rate limit."""

from __future__ import annotations

from gpucredits.client.call import Call, Number, Setting, account_path, read, write
from gpucredits.wire.limits import LimitsAnswer
from gpucredits.wire.rate_limit import (
    RateLimitAnswer,
    RateLimitChange,
    RateLimitRequest,
    RateLimitTerms,
)


def limits(account: str) -> Call[LimitsAnswer]:
    """Every limit that a job of the account meets, the org's first: cap, used, left, resets at."""
    return read(account_path(account, "/limits"), LimitsAnswer)


def rate_limit(account: str) -> Call[RateLimitAnswer]:
    """An account's rate limit and how it stands."""
    return read(account_path(account, "/rate-limit"), RateLimitAnswer)


def set_rate_limit(
    account: str,
    *,
    capacity: Number | None = None,
    refill_per_hour: Number | None = None,
    replace: bool = False,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RateLimitTerms]:
    """Let an account authorise at most ``capacity`` credits at once, refilled each hour.

    What is not given stays as it is; with ``replace`` both must be given.
    """
    return Setting(replace=replace).call(
        account_path(account, "/rate-limit"),
        RateLimitTerms,
        change=RateLimitChange,
        whole=RateLimitRequest,
        fields={"capacity": capacity, "refill_per_hour": refill_per_hour},
        key=key,
        dry_run=dry_run,
    )


def end_rate_limit(
    account: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RateLimitTerms]:
    """Take an account's rate limit away."""
    path = account_path(account, "/rate-limit")
    return write(path, RateLimitTerms, key=key, dry_run=dry_run, method="DELETE")
