"""What a limit on requests costs a request: in the process, and through Redis.

Run it as ``python bench/limiter.py [--redis-url redis://...]``. Without an address only the process
is measured. Buckets never run dry, so that every draw is one that passes.
"""

from __future__ import annotations

import argparse
import asyncio
from time import process_time
from typing import Any, cast

from gpucredits.core.limits import TokenBucket
from gpucredits.core.request_limit import BucketDraw, BucketName, Holder, RequestLimit
from gpucredits.service.limits.bucket_levels import KnownBucket, Levels
from gpucredits.service.limits.limiter import Limiter, ProcessLimiter
from gpucredits.service.limits.redis_limiter import RedisLimiter
from gpucredits.store.limits.redis_buckets import RedisBuckets

DRAWS = 100_000
REDIS_DRAWS = 5_000
ROUNDS = 5
GENEROUS = RequestLimit(1_000_000, 3_600_000_000)
KEY = BucketDraw(BucketName(1, Holder.KEY, 1, "acme"), GENEROUS)
ORG = BucketDraw(BucketName(1, Holder.ORG, 0, "acme"), GENEROUS)


class NothingSaved(Levels):
    """Levels of a database that has never seen a bucket."""

    def __init__(self) -> None:
        super().__init__(cast("Any", None))

    async def best_known(self, ask: BucketDraw) -> TokenBucket:
        """A full bucket."""
        now = self.clock()
        bucket = TokenBucket(1, 0, ask.limit.capacity, ask.limit.refill_per_hour, 1_000_000, now)
        self.kept.setdefault(ask.name, KnownBucket(ask.name, bucket))
        return bucket


async def microseconds(limiter: Limiter, asks: tuple[BucketDraw, ...], draws: int) -> float:
    """The processor time that one draw takes of this process, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = process_time()
        for _ in range(draws):
            verdict = await limiter.draw(asks)
            if verdict is None or not verdict.is_drawn:
                raise SystemExit("a draw did not pass: this measures something else")
        best = min(best, (process_time() - began) / draws)
    return best * 1_000_000


async def main(url: str | None) -> None:
    """Measure, and print."""
    print("processor time of the server's own process")
    for name, asks in (("a key", (KEY,)), ("a key and its org", (KEY, ORG))):
        cost = await microseconds(ProcessLimiter(NothingSaved()), asks, DRAWS)
        print(f"{name:18} in the process  {cost:8.2f} µs a request")
        if url is not None:
            limiter = RedisLimiter(RedisBuckets(url, timeout_s=5.0), NothingSaved())
            cost = await microseconds(limiter, asks, REDIS_DRAWS)
            print(f"{name:18} through Redis   {cost:8.2f} µs a request, and one round trip")
            await limiter.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redis-url")
    asyncio.run(main(parser.parse_args().redis_url))
