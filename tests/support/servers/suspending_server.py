"""A server whose request limits one timeout of Redis suspends, so that a test can show it sees it.

It runs ``gpucredits serve`` with the first draw failing, and everything let in from then on.
"""

from __future__ import annotations

import asyncio
from unittest.mock import patch

from gpucredits.cli.main import main
from gpucredits.service.limits import redis_limiter
from gpucredits.service.limits.redis_limiter import RedisLimiter
from gpucredits.store.limits.redis_buckets import RedisAway, RedisBuckets


async def fail(*_: object, **__: object) -> None:
    """In place of a draw."""
    raise RedisAway("TimeoutError")


async def let_in(*_: object) -> None:
    """In place of the process's own count: it cannot tell."""


async def wait(*_: object) -> None:
    """In place of the probe that ends an outage."""
    await asyncio.Event().wait()


if __name__ == "__main__":
    with (
        patch.object(redis_limiter, "FAILURES_MAX", 1),
        patch.object(RedisBuckets, "draw", fail),
        patch.object(RedisLimiter, "_draw_alone", let_in),
        patch.object(RedisLimiter, "_probe", wait),
    ):
        main()
