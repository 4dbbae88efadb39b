"""Refusals that setting a quota, a budget and a boost share: one too many, a zone that is none."""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.period import check_zone
from gpucredits.core.reasons import Reason, Refused


def too_many(what: str, there: int, most: int, account: Account) -> Refused | None:
    """Refuse to make one more of something than an account may have."""
    if there < most:
        return None
    return Refused(
        Reason.LIMIT_INVALID,
        f"{account.path} has {there} {what} already, and {most} is the most: end one first.",
        {"account": account.path, "limit": most},
    )


def zone_unknown(zone: str) -> Refused | None:
    """Refuse a zone that is not one."""
    try:
        check_zone(zone)
    except ValueError as error:
        return Refused(Reason.ZONE_UNKNOWN, f"zone {error}.", {"zone": zone})
    return None
