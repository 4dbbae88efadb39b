"""Request limits that several servers share through Redis.

Owns: what happens when Redis has forgotten a bucket (it is made again from what is known of it,
never fresh) and when Redis is away (requests pass, are counted, and limits hold again once it
answers).
Must not: speak Redis; store.redis_buckets does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gpucredits.core.request_limit import Ask, bucket_of
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.service.bucket_levels import Kept, Levels, LevelUnknown
from gpucredits.service.limiter import LimiterHealth, Verdict, verdict_of
from gpucredits.store.redis_buckets import NOTHING, Answer, RedisAway, RedisBuckets, Seen

PROBE_PAUSE_S: Final = 0.25
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
        self._is_open = False
        self._let_through = 0
        self._probing: asyncio.Task[None] | None = None

    @property
    def health(self) -> LimiterHealth:
        """Whether limits hold."""
        return LimiterHealth("redis", is_open=self._is_open, let_through=self._let_through)

    async def draw(self, asks: Sequence[Ask]) -> Verdict | None:
        """Draw in one round trip; a second one where Redis has forgotten a bucket."""
        if self._is_open:
            self._let_through += 1
            return None
        try:
            answer = await self._buckets.draw(asks, [self._seen(ask) for ask in asks])
            if not answer.is_there:
                known = await asyncio.gather(*(self._levels.best_known(ask) for ask in asks))
                seeds = [Seen("", bucket.level, bucket.fraction, 0) for bucket in known]
                answer = await self._buckets.draw(asks, seeds, may_make=True)
        except RedisAway as error:
            self._suspend(str(error))
            self._let_through += 1
            return None
        except LevelUnknown:
            self._let_through += 1
            return None
        now = self._levels.clock()
        buckets = self._remember(asks, answer, now)
        return verdict_of(asks, buckets, now, is_drawn=answer.is_drawn)

    async def look(self, ask: Ask) -> TokenBucket | None:
        """The bucket in Redis; one that Redis has forgotten, as it would be made again."""
        if self._is_open:
            return None
        try:
            answer = await self._buckets.look(ask, self._seen(ask))
            if not answer.is_there:
                return await self._levels.best_known(ask)
        except (RedisAway, LevelUnknown):
            return None
        [(level, fraction, _)] = answer.buckets
        return bucket_of(ask, level=level, fraction=fraction, level_at=self._levels.clock())

    async def save(self) -> bool:
        """Save a bounded number of levels; whether there are more."""
        return await self._levels.save()

    async def start(self) -> None:
        """See whether Redis is there; without it, limits are suspended from the start."""
        try:
            await self._buckets.probe()
        except RedisAway as error:
            self._suspend(str(error))

    async def stop(self) -> None:
        """Let go of Redis."""
        if self._probing is not None:
            self._probing.cancel()
            with suppress(asyncio.CancelledError):
                await self._probing
        await self._buckets.close()

    def _seen(self, ask: Ask) -> Seen:
        kept = self._levels.kept.get(ask.name)
        if kept is None:
            return NOTHING
        bucket = kept.bucket
        age_us = max(0, self._levels.clock() - bucket.level_at)
        return Seen(kept.epoch, bucket.level, bucket.fraction, age_us)

    def _remember(self, asks: Sequence[Ask], answer: Answer, now: int) -> list[TokenBucket]:
        """Keep what was seen, unless an answer that was given later has arrived before this one."""
        buckets = []
        for ask, (level, fraction, epoch) in zip(asks, answer.buckets, strict=True):
            bucket = bucket_of(ask, level=level, fraction=fraction, level_at=now)
            buckets.append(bucket)
            before = self._levels.kept.get(ask.name)
            is_late = (
                before is not None
                and before.epoch == epoch
                and 0 < before.shared_at - answer.now < LATE_US_MAX
            )
            if not is_late:
                self._levels.kept[ask.name] = Kept(ask.name, bucket, epoch, answer.now)
                self._levels.changed.add(ask.name)
        return buckets

    def _suspend(self, why: str) -> None:
        if self._is_open:
            return
        self._is_open = True
        logger.warning(
            "Redis is away: request limits are suspended", extra={"fields": {"why": why}}
        )
        self._probing = asyncio.create_task(self._probe(self._let_through), name="Redis probe")

    async def _probe(self, before: int) -> None:
        """Ask until Redis does again what a request needs of it."""
        while self._is_open:
            await asyncio.sleep(self._probe_pause_s)
            with suppress(RedisAway):
                await self._buckets.probe()
                self._is_open = False
        passed = self._let_through - before
        logger.warning(
            "Redis is back: request limits hold again", extra={"fields": {"let_through": passed}}
        )
