"""How many requests pass: a token from the bucket of the key and from that of its org.

Owns: what a limiter is, its verdict, and the limiter of one process. All buckets of a request are
drawn from, or none. A limiter that cannot tell lets the request through and counts it.
Must not: know HTTP, money, or who may set limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from gpucredits.core.limits import TokenBucket, advance, clears_at, resize
from gpucredits.core.request_limit import BucketDraw
from gpucredits.service.limits.bucket_levels import KnownBucket, Levels, LevelUnknown


class RequestVerdict(NamedTuple):
    """Whether a request passes, and the bucket that is nearest to saying no, or says it.

    ``left`` are its whole tokens, ``clears_in_us`` is when it has one again and ``full_in_us``
    when it is full.
    """

    is_drawn: bool
    ask: BucketDraw
    left: int
    clears_in_us: int
    full_in_us: int


@dataclass(frozen=True, slots=True)
class LimiterHealth:
    """Where the buckets live, whether this process counts alone, and what passed meanwhile.

    ``passed_alone`` passed by this process's own count because the shared one was away;
    ``let_through`` passed unlimited, because nobody knew the level of their bucket.
    """

    home: Literal["process", "redis"]
    is_alone: bool
    let_through: int
    passed_alone: int = 0


class Limiter(Protocol):
    """Says which requests pass."""

    @property
    def health(self) -> LimiterHealth:
        """Whether limits hold."""

    async def draw(self, asks: Sequence[BucketDraw]) -> RequestVerdict | None:
        """Draw a token from every bucket or from none; None: it could not tell, let it pass."""

    async def look(self, ask: BucketDraw) -> TokenBucket | None:
        """A bucket by the terms asked for as it stands now, nothing drawn; None: unknown."""

    async def save(self) -> bool:
        """Save a bounded number of levels; whether there are more."""

    async def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End; saving is the caller's."""


class ProcessLimiter:
    """Buckets in this process alone: for one server, or one share for each of several."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._let_through = 0

    @property
    def health(self) -> LimiterHealth:
        """Limits always hold here."""
        return LimiterHealth("process", is_alone=False, let_through=self._let_through)

    async def draw(self, asks: Sequence[BucketDraw]) -> RequestVerdict | None:
        """Draw from memory; a bucket is read from the database when it is first needed.

        A bucket that was counted elsewhere until now is taken over, at the lowest known level.
        """
        levels = self._levels
        kept = levels.kept
        for ask in asks:
            if ask.name not in kept or kept[ask.name].epoch:
                try:
                    await self._recall(asks)
                except LevelUnknown:
                    self._let_through += 1
                    return None
                break
        now = levels.clock()
        buckets = []
        is_drawn = True
        for ask in asks:
            bucket, limit = kept[ask.name].bucket, ask.limit
            advance(bucket, (), now)
            if bucket.capacity != limit.capacity or bucket.refill_per_hour != limit.refill_per_hour:
                resize(
                    bucket,
                    capacity=limit.capacity,
                    refill_per_hour=limit.refill_per_hour,
                    now=now,
                )
            if bucket.level < 1:
                is_drawn = False
            buckets.append(bucket)
        if is_drawn:
            for ask, bucket in zip(asks, buckets, strict=True):
                bucket.level -= 1
                levels.changed.add(ask.name)
        return verdict_of(asks, buckets, now, is_drawn=is_drawn)

    async def look(self, ask: BucketDraw) -> TokenBucket | None:
        """A copy of the bucket as this process knows it, or as it was saved."""
        kept = self._levels.kept.get(ask.name)
        try:
            bucket = copy(kept.bucket) if kept else await self._levels.best_known(ask)
        except LevelUnknown:
            return None
        terms = ask.limit
        resize(
            bucket,
            capacity=terms.capacity,
            refill_per_hour=terms.refill_per_hour,
            now=self._levels.clock(),
        )
        return bucket

    async def save(self) -> bool:
        """Save a bounded number of levels; whether there are more."""
        return await self._levels.save()

    async def start(self) -> None:
        """Nothing needs to begin."""

    async def stop(self) -> None:
        """Nothing needs to end."""

    async def _recall(self, asks: Sequence[BucketDraw]) -> None:
        """Bring the buckets of a request into memory, unless another request did meanwhile."""
        kept = self._levels.kept
        known = await asyncio.gather(*(self._levels.best_known(ask) for ask in asks))
        for ask, bucket in zip(asks, known, strict=True):
            before = kept.get(ask.name)
            if before is None or before.epoch:
                kept[ask.name] = KnownBucket(ask.name, bucket)


def verdict_of(
    asks: Sequence[BucketDraw], buckets: Sequence[TokenBucket], now: int, *, is_drawn: bool
) -> RequestVerdict:
    """The verdict by the bucket that has least; of empty ones, by the one that stays empty longest.

    The buckets have been brought to ``now``.
    """
    worst = 0
    for number in range(1, len(buckets)):
        one, other = buckets[number], buckets[worst]
        if one.level < other.level or (
            one.level == 0 == other.level and _wait_us(one, 1, now) > _wait_us(other, 1, now)
        ):
            worst = number
    bucket = buckets[worst]
    return RequestVerdict(
        is_drawn,
        asks[worst],
        bucket.level,
        0 if bucket.level > 0 else _wait_us(bucket, 1, now),
        _wait_us(bucket, bucket.capacity, now),
    )


def _wait_us(bucket: TokenBucket, amount: int, now: int) -> int:
    """How long until there are so many tokens; limits always refill and hold at least one."""
    at = clears_at(bucket, amount, now)
    return 0 if at is None else at - now
