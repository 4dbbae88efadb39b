"""Limiters on a real database and a real Redis, with a clock that a test can hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from gpucredits.core.request_limit import BucketDraw, BucketName, Holder, RequestLimit
from gpucredits.service.limits.bucket_levels import Levels, monotonic_us
from gpucredits.service.limits.limiter import Limiter
from gpucredits.service.limits.redis_limiter import RedisLimiter
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import PoolOptions, open_pool
from gpucredits.store.limits.redis_buckets import RedisBuckets

PATIENT_S = 60.0  # a busy machine is no outage
Result = TypeVar("Result")


def ask(  # one argument for each knob
    number: int = 1,
    *,
    capacity: int = 10,
    refill_per_hour: int = 1,
    org: str = "acme",
    org_id: int = 1,
    holder: Holder = Holder.KEY,
) -> BucketDraw:
    """A bucket that hardly refills, unless said otherwise."""
    name = BucketName(org_id, holder, 0 if holder is Holder.ORG else number, org)
    return BucketDraw(name, RequestLimit(capacity, refill_per_hour))


class HeldClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = monotonic_us()

    def __call__(self) -> int:
        """Microseconds."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * 1_000_000)


async def admitted(limiter: Limiter, *asks: BucketDraw, tries: int) -> int:
    """How many of some requests in a row pass."""
    count = 0
    for _ in range(tries):
        verdict = await limiter.draw(asks)
        count += verdict is None or verdict.is_drawn
    return count


def play(
    database: str, act: Callable[[Pool], Awaitable[Result]], *, lock_timeout_s: float = 10
) -> Result:
    """Run an act on a pool of its own."""

    async def run() -> Result:
        options = PoolOptions(
            connections_max=4,
            allow_no_checksums=True,
            lock_timeout_ms=int(lock_timeout_s * 1_000),
            statement_timeout_ms=int(lock_timeout_s * 3_000),
        )
        pool = await open_pool(database, options)
        try:
            return await act(pool)
        finally:
            await pool.close()

    return asyncio.run(run())


@asynccontextmanager
async def shared_limiter(
    pool: Pool, url: str, *, timeout_s: float = PATIENT_S
) -> AsyncIterator[RedisLimiter]:
    """A replica's limiter on a Redis."""
    buckets = RedisBuckets(url, timeout_s=timeout_s)
    limiter = RedisLimiter(buckets, Levels(pool), probe_pause_s=0.01)
    await limiter.start()
    try:
        yield limiter
    finally:
        await limiter.stop()
