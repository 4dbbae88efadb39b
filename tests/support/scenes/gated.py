"""Short words for what tests of the stored gates do: an org, its limits, and what they count."""

from __future__ import annotations

from typing import Any

from gpucredits.core.command import (
    Reserve,
    SetQuota,
    SetRateLimit,
)
from gpucredits.core.outcome import QuotaSaved, RateLimitSaved
from gpucredits.core.period import Calendar, period_at
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from support.scenes.scene import HOUR_US, Scene

ALICE = "acme/vision/alice"
SCOPES = ("acme", "acme/vision", ALICE)
WINDOW = Dimension.CREDITS_PER_WINDOW
DAY_US = 24 * HOUR_US


async def set_up(stage: Scene) -> None:
    """An org with plenty of credits, a project and a user; it is noon."""
    await stage.fund("acme", credits_each=100_000)
    await stage.fund("acme/vision", ALICE, credits_each=0)
    await until_noon(stage)


async def quota(stage: Scene, account: str, dimension: Dimension, limit: int, **more: Any) -> int:
    """Set a quota; windows are days unless told."""
    if dimension is WINDOW and not more:
        more = {"calendar": Calendar.DAY}
    command = SetQuota(account=account, dimension=dimension, limit=limit, **more)
    outcome = await stage.do(command)
    assert isinstance(outcome, QuotaSaved), outcome
    return outcome.quota.quota_id


async def rate(stage: Scene, account: str, capacity: int, refill: int = 0) -> int:
    """Set a rate limit."""
    command = SetRateLimit(account=account, capacity=capacity, refill_per_hour=refill)
    outcome = await stage.do(command)
    assert isinstance(outcome, RateLimitSaved), outcome
    return outcome.bucket.bucket_id


async def refused(stage: Scene, **more: Any) -> Refused:
    """A job of alice's that must be refused."""
    wanted: dict[str, Any] = {
        "account": ALICE,
        "job_id": "other",
        "gpu_type": "h100",
        "milli_gpus": 1_000,
    }
    outcome = await stage.do(Reserve(**wanted | {"window_ms": 10_000} | more))
    assert isinstance(outcome, Refused), outcome
    return outcome


async def counters(stage: Scene) -> list[tuple[int, ...]]:
    """(count, leaving, used, held) of every quota, in order."""
    rows = await stage.pool.fetch(
        "SELECT count, leaving, used, held FROM counters ORDER BY quota_id"
    )
    return [tuple(row) for row in rows]


async def until_midnight(stage: Scene, zone: str = "UTC", *, before_s: float = 0) -> int:
    """Move the clock to some seconds before the end of a local day; when that day ends.

    It is the next day if so little of the present one is left, or less.
    """
    now = (await stage.balance()).as_of
    _, ends_at = period_at(Calendar.DAY, zone, now + max(int(before_s * 1_000_000), 0))
    await stage.advance((ends_at - now) / 1_000_000 - before_s)
    return ends_at


async def until_noon(stage: Scene) -> None:
    """Move the clock to a time at which no day, and so no month, ends for hours."""
    await until_midnight(stage, before_s=12 * 3_600)
