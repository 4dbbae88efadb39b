"""Request limits that several servers share through Redis.

Owns: what happens when Redis has forgotten a bucket (it is made again from what is known of it,
never fresh) and when Redis does not answer: this process counts alone, from the least that is known
of a bucket, and tells Redis of it afterwards. What is known is never less than what is there, so
alone it refuses nothing that Redis would have let in.
Must not: speak Redis; store.redis_buckets does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gpucredits.core.limits import TokenBucket
from gpucredits.core.request_limit import BucketDraw, bucket_of
from gpucredits.service.limits.bucket_levels import KnownBucket, Levels, LevelUnknown, lower
from gpucredits.service.limits.limiter import (
    LimiterHealth,
    ProcessLimiter,
    RequestVerdict,
    verdict_of,
)
from gpucredits.store.limits.redis_buckets import (
    NOTHING,
    Answer,
    BucketSeen,
    RedisAway,
    RedisBuckets,
)

PROBE_PAUSE_S: Final = 0.25
FAILURES_MAX: Final = 3  # in a row; then Redis is asked by the probe alone
LATE_US_MAX: Final = 5_000_000  # beyond it, it is Redis's clock that went back

logger = logging.getLogger(__name__)


class RedisLimiter:
    """Buckets in Redis; this process remembers what it last saw of them."""

    def __init__(
        self, buckets: RedisBuckets, levels: Levels, *, probe_pause_s: float = PROBE_PAUSE_S
    ) -> None:
        self._buckets = buckets
        self._levels = levels
        self._probe_pause_s = probe_pause_s
        self._process = ProcessLimiter(levels)
        self._failures = 0
        self._is_alone = False
        self._let_through = 0
        self._passed_alone = 0
        self._probing: asyncio.Task[None] | None = None

    @property
    def health(self) -> LimiterHealth:
        """Whether limits are shared, and what passed when they were not."""
        let_through = self._let_through + self._process.health.let_through
        return LimiterHealth(
            "redis",
            is_alone=self._is_alone,
            let_through=let_through,
            passed_alone=self._passed_alone,
        )

    async def draw(self, asks: Sequence[BucketDraw]) -> RequestVerdict | None:
        """Draw in one round trip; a second one where Redis has forgotten a bucket."""
        if self._is_alone:
            return await self._draw_alone(asks)
        try:
            answer = await self._buckets.draw(asks, [self._seen(ask) for ask in asks])
            if not answer.is_there:
                known = await asyncio.gather(*(self._levels.best_known(ask) for ask in asks))
                seeds = [BucketSeen("", bucket.level, bucket.fraction, 0) for bucket in known]
                answer = await self._buckets.draw(asks, seeds, may_make=True)
        except RedisAway as error:
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                self._part(str(error))
            return await self._draw_alone(asks)
        except LevelUnknown:
            self._let_through += 1
            return None
        self._failures = 0
        now = self._levels.clock()
        buckets = self._remember(asks, answer, now)
        return verdict_of(asks, buckets, now, is_drawn=answer.is_drawn)

    async def look(self, ask: BucketDraw) -> TokenBucket | None:
        """The bucket in Redis; a forgotten bucket as it would be made again."""
        if self._is_alone:
            return await self._process.look(ask)
        try:
            answer = await self._buckets.look(ask, self._seen(ask))
            if not answer.is_there:
                return await self._levels.best_known(ask)
        except RedisAway:
            return await self._process.look(ask)
        except LevelUnknown:
            return None
        [(level, fraction, _)] = answer.buckets
        return bucket_of(ask, level=level, fraction=fraction, level_at=self._levels.clock())

    async def _draw_alone(self, asks: Sequence[BucketDraw]) -> RequestVerdict | None:
        """Draw by what this process knows: it refuses only what its own bucket cannot give."""
        verdict = await self._process.draw(asks)
        if verdict is not None and verdict.is_drawn:
            self._passed_alone += 1
        return verdict

    async def save(self) -> bool:
        """Save a bounded number of levels; whether there are more."""
        return await self._levels.save()

    async def start(self) -> None:
        """See whether Redis is there, and connect; without it, count alone from the start."""
        try:
            await self._buckets.warm()
        except RedisAway as error:
            self._part(str(error))

    async def stop(self) -> None:
        """Let go of Redis."""
        if self._probing is not None:
            self._probing.cancel()
            with suppress(asyncio.CancelledError):
                await self._probing
        await self._buckets.close()

    def _seen(self, ask: BucketDraw) -> BucketSeen:
        kept = self._levels.kept.get(ask.name)
        if kept is None:
            return NOTHING
        bucket = kept.bucket
        age_us = max(0, self._levels.clock() - bucket.level_at)
        return BucketSeen(kept.epoch, bucket.level, bucket.fraction, age_us)

    def _remember(self, asks: Sequence[BucketDraw], answer: Answer, now: int) -> list[TokenBucket]:
        """Keep what was seen, unless more is known already.

        An answer that was given later may have arrived before this one; and what this process drew
        alone after this was asked is not in it.
        """
        buckets = []
        for ask, (level, fraction, epoch) in zip(asks, answer.buckets, strict=True):
            bucket = bucket_of(ask, level=level, fraction=fraction, level_at=now)
            buckets.append(bucket)
            before = self._levels.kept.get(ask.name)
            seen = KnownBucket(ask.name, bucket, epoch, answer.now)
            if before is None or not _is_ahead(before, seen, ask, now):
                self._levels.kept[ask.name] = seen
                self._levels.changed.add(ask.name)
        return buckets

    def _part(self, why: str) -> None:
        """Count alone until Redis answers again."""
        if self._is_alone:
            return
        self._is_alone = True
        logger.warning(
            "Redis is away: this server counts requests alone", extra={"fields": {"why": why}}
        )
        before = self.health
        self._probing = asyncio.create_task(self._probe(before), name="Redis probe")

    async def _probe(self, before: LimiterHealth) -> None:
        """Ask until Redis does again what a request needs of it."""
        while self._is_alone:
            await asyncio.sleep(self._probe_pause_s)
            with suppress(RedisAway):
                await self._buckets.warm()
                self._is_alone = False
                self._failures = 0
        after = self.health
        passed = {
            "passed_alone": after.passed_alone - before.passed_alone,
            "let_through": after.let_through - before.let_through,
        }
        logger.warning("Redis is back: request limits are shared again", extra={"fields": passed})


def _is_ahead(before: KnownBucket, seen: KnownBucket, ask: BucketDraw, now: int) -> bool:
    """Whether what is kept of a bucket is nearer the truth than what was seen of it."""
    if before.epoch:
        return before.epoch == seen.epoch and 0 < before.shared_at - seen.shared_at < LATE_US_MAX
    own = before.bucket
    own = bucket_of(ask, level=own.level, fraction=own.fraction, level_at=own.level_at)
    return lower(seen.bucket, own, now) is own
