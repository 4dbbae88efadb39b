"""Limits in words, as answers show them and the audit log keeps them.

Owns: the fields of each and how they are written. A field that does not apply is None.
Must not: say how a limit stands now.
"""

from __future__ import annotations

from typing import Any

from gpucredits.core import bounds, ids
from gpucredits.core.authority import scope_word
from gpucredits.core.budget import Budget
from gpucredits.core.gate import GateUnit, quantity
from gpucredits.core.limits import Boost, TokenBucket
from gpucredits.core.money import format_credits
from gpucredits.core.period import Calendar, format_end, format_instant
from gpucredits.core.quota import Quota, unit_of


def quota_state(org_id: int, path: str, quota: Quota) -> dict[str, Any]:
    """A quota as it was set."""
    unit = unit_of(quota.dimension)
    return {
        "quota_id": ids.format_id(ids.QUOTA, org_id, quota.quota_id),
        "account": path,
        "dimension": quota.dimension.name.lower(),
        "unit": unit.value,
        "limit": quantity(quota.limit, unit),
        "gpu_type": quota.gpu_type or None,
        "calendar": calendar_word(quota.calendar),
        "zone": None if quota.calendar is None else quota.zone,
        "rolling_hours": quota.rolling_hours or None,
        "created_at": format_instant(quota.created_at),
        "set_by_scope": scope_word(quota.set_by),
        "ended_at": format_instant(quota.ended_at) if quota.ended_at else None,
    }


def rate_limit_state(org_id: int, path: str, bucket: TokenBucket) -> dict[str, Any]:
    """A rate limit as it was set."""
    return {
        "limit_id": ids.format_id(ids.RATE_LIMIT, org_id, bucket.bucket_id),
        "account": path,
        "capacity": format_credits(bucket.capacity),
        "refill_per_hour": format_credits(bucket.refill_per_hour),
        "set_by_scope": scope_word(bucket.set_by),
        "ended_at": format_instant(bucket.ended_at) if bucket.ended_at else None,
    }


def boost_state(
    org_id: int, path: str, boost: Boost, *, unit: GateUnit, is_rate_limit: bool
) -> dict[str, Any]:
    """A boost of a quota or of a rate limit."""
    target = ids.RATE_LIMIT if is_rate_limit else ids.QUOTA
    return {
        "boost_id": ids.format_id(ids.BOOST, org_id, boost.boost_id),
        "account": path,
        "target_id": ids.format_id(target, org_id, boost.target_id),
        "unit": unit.value,
        "amount": quantity(boost.amount, unit),
        "refill_per_hour": format_credits(boost.refill_per_hour) if is_rate_limit else None,
        "starts_at": format_instant(boost.starts_at),
        "ends_at": format_instant(boost.ends_at),
        "note": boost.note,
        "created_at": format_instant(boost.created_at),
        "set_by_scope": scope_word(boost.set_by),
    }


def budget_state(org_id: int, path: str, budget: Budget) -> dict[str, Any]:
    """A budget as it was set, and when its next period begins."""
    return {
        "budget_id": ids.format_id(ids.BUDGET, org_id, budget.budget_id),
        "account": path,
        "name": budget.name,
        "allowance": format_credits(budget.allowance),
        "calendar": calendar_word(budget.calendar),
        "zone": None if budget.calendar is None else budget.zone,
        "ends_at": format_end(budget.ends_at),
        "rollover": budget.rollover.name.lower(),
        "rollover_cap": format_credits(budget.rollover_cap) if budget.rollover_cap else None,
        "rollover_seconds": budget.rollover_us // bounds.SECOND_US or None,
        "priority": budget.priority,
        "warn_percent": list(budget.warn_percent),
        "next_at": format_instant(budget.next_at) if budget.is_open else None,
        "created_at": format_instant(budget.created_at),
    }


def calendar_word(calendar: Calendar | None) -> str | None:
    """The word for a calendar."""
    return None if calendar is None else calendar.name.lower()
