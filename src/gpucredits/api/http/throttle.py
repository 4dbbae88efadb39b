"""The first thing that a request with a key meets: whether it may be made now.

Owns: the answer to one that may not, and the headers that say how much is left. It comes before
the request's permission, its body and its idempotency key are looked at, so a request that was
turned away was never begun and is remembered nowhere. Its answer comes after a pause, which costs
nothing here and keeps a client that hammers on its limit from hammering faster.
Must not: count; the limiter does.
"""

from __future__ import annotations

import asyncio
import time

from gpucredits.api.http.errors import ProblemError
from gpucredits.core import ids
from gpucredits.core.bounds import SECOND_US
from gpucredits.core.duration import format_seconds
from gpucredits.core.request_limit import BucketDraw, Holder
from gpucredits.service.access.permissions import Principal
from gpucredits.service.limits.limiter import Limiter, RequestVerdict
from gpucredits.wire.request_limit import RequestLimitShown
from gpucredits.wire.scalars import format_instant

PAUSE_S = 0.1
PAUSES = asyncio.Semaphore(2_000)  # beyond so many at once, whoever is turned away is told at once


async def throttle(limiter: Limiter, principal: Principal, headers: dict[str, str]) -> None:
    """Draw a token for a request of a limited key, or end it with 429; writes headers."""
    verdict = await limiter.draw(principal.asks)
    if verdict is None:
        return
    headers["ratelimit-limit"] = str(verdict.ask.limit.capacity)
    headers["ratelimit-remaining"] = str(verdict.left)
    headers["ratelimit-reset"] = str(-(-verdict.full_in_us // SECOND_US))
    if not verdict.is_drawn:
        await pause()
        raise too_many(verdict, time.time_ns() // 1_000)


async def pause() -> None:
    """Let a client that comes too fast wait for its answer, unless too many do already."""
    if not PAUSES.locked():
        async with PAUSES:
            await asyncio.sleep(PAUSE_S)


def too_many(verdict: RequestVerdict, now: int) -> ProblemError:
    """The problem of a request that came too soon; ``now`` is the clock of the answer."""
    ask = verdict.ask
    wait_s = max(1, -(-verdict.clears_in_us // SECOND_US))
    shown, wait = shown_limit(ask), format_seconds(wait_s)
    pace = f"{ask.limit.refill_per_hour} an hour, {ask.limit.capacity} at once"
    return ProblemError(
        "rate_limited",
        f"{shown.name} makes more requests than it may ({pace}). Ask again in {wait}.",
        headers={"retry-after": str(wait_s)},
        clears_at=format_instant(now + verdict.clears_in_us),
        limit=shown,
    )


def shown_limit(ask: BucketDraw) -> RequestLimitShown:
    """The limit as a problem shows it."""
    name = ask.name
    is_key = name.holder is Holder.KEY
    return RequestLimitShown(
        holder="key" if is_key else "org",
        name=ids.format_id(ids.KEY, name.org_id, name.number) if is_key else name.org,
        unit="requests",
        capacity=ask.limit.capacity,
        refill_per_hour=ask.limit.refill_per_hour,
    )
