"""What is known of request buckets: by this process, and by the database.

Owns: the memory of levels, saving those that changed in bounded batches, and reading back the saved
ones, many at a time. A known level, brought forward by the time since, is never below the true
level: so of two known levels the lower one is nearer the truth.
Must not: decide whether a request passes, or speak SQL.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpucredits.core.limits import TokenBucket, advance
from gpucredits.core.request_limit import BucketDraw, BucketName, RequestLimit, bucket_of
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.errors import Conflict, Unavailable
from gpucredits.store.limits.request_limits import Level, load_levels, save_levels

SAVED_ROWS_MAX: Final = 5_000  # in one statement
LOADED_ROWS_MAX: Final = 1_000
LOAD_TIMEOUT_S: Final = 2.0
KEPT_MAX: Final = 100_000

Clock = Callable[[], int]


class LevelUnknown(Exception):  # noqa: N818  # it states what happened
    """The database cannot say what a bucket held."""


def monotonic_us() -> int:
    """A clock that never goes back; only differences of it mean anything."""
    return time.monotonic_ns() // 1_000


@dataclass(slots=True)
class KnownBucket:
    """A bucket as this process knows it: ``level_at`` is by the process's own clock.

    ``epoch`` and ``shared_at`` say which bucket of a shared home was seen, and when by its clock.
    Without an epoch the process counts it by itself, and knows of draws that nobody else does.
    """

    name: BucketName
    bucket: TokenBucket
    epoch: str = ""
    shared_at: int = 0


class Levels:
    """The levels that this process knows, and a door to those that are saved."""

    def __init__(
        self, pool: Pool, *, clock: Clock = monotonic_us, kept_max: int = KEPT_MAX
    ) -> None:
        self.kept: dict[BucketName, KnownBucket] = {}
        self.changed: set[BucketName] = set()
        self.clock = clock
        self._pool = pool
        self._kept_max = kept_max
        self._wanted: dict[BucketName, asyncio.Future[Level | bool]] = {}
        self._loading: asyncio.Task[None] | None = None

    async def best_known(self, ask: BucketDraw) -> TokenBucket:
        """The bucket as nearly as it is known, brought to now: the lower of memory and database.

        A bucket that nobody knows is new, and full. Raises ``LevelUnknown`` when the database
        cannot say and this process has never seen it.
        """
        try:
            saved = await self._saved(ask.name)
        except LevelUnknown:
            if ask.name not in self.kept:
                raise
            saved = None
        now = self.clock()
        capacity = ask.limit.capacity
        best = bucket_of(ask, level=capacity, fraction=0, level_at=now)
        if saved is not None:
            since = now - saved.age_us
            known = bucket_of(ask, level=saved.level, fraction=saved.fraction, level_at=since)
            best = lower(best, known, now)
        kept = self.kept.get(ask.name)
        if kept is not None:
            seen = kept.bucket
            known = bucket_of(ask, level=seen.level, fraction=seen.fraction, level_at=seen.level_at)
            best = lower(best, known, now)
        return best

    async def save(self) -> bool:
        """Save a bounded number of the levels that changed; whether there are more."""
        names = list(self.changed)[:SAVED_ROWS_MAX]
        self.changed.difference_update(names)
        now = self.clock()
        levels = [_level(self.kept[name], now) for name in names if name in self.kept]
        if levels:
            try:
                await save_levels(self._pool, levels)
            except BaseException:
                self.changed.update(names)
                raise
        self._make_room()
        return bool(self.changed) and len(names) == SAVED_ROWS_MAX

    def _make_room(self) -> None:
        """Forget the buckets known for longest, of those that are saved."""
        surplus = len(self.kept) - self._kept_max
        if surplus > 0:
            for name in [each for each in self.kept if each not in self.changed][:surplus]:
                del self.kept[name]

    async def _saved(self, name: BucketName) -> Level | None:
        """What was saved of a bucket; those wanted at the same time are read together."""
        found = self._wanted.get(name)
        if found is None:
            found = self._wanted[name] = asyncio.get_running_loop().create_future()
            if self._loading is None or self._loading.done():
                self._loading = asyncio.create_task(self._load(), name="request bucket levels")
        level = await asyncio.shield(found)
        if level is False:
            raise LevelUnknown
        return level if isinstance(level, Level) else None

    async def _load(self) -> None:
        await asyncio.sleep(0)  # let whoever else is ready ask as well
        while self._wanted:
            names = list(self._wanted)[:LOADED_ROWS_MAX]
            levels: dict[BucketName, Level] | None = None
            try:
                async with asyncio.timeout(LOAD_TIMEOUT_S):
                    levels = await load_levels(self._pool, names)
            except (Unavailable, Conflict, TimeoutError):
                levels = None
            finally:  # whatever happened, nobody waits for ever
                for name in names:
                    answer = False if levels is None else levels.get(name, True)
                    self._wanted.pop(name).set_result(answer)


def lower(one: TokenBucket, other: TokenBucket, now: int) -> TokenBucket:
    """The one that holds less, both brought to now; of equals the first."""
    advance(one, (), now)
    advance(other, (), now)
    return min(one, other, key=lambda each: (each.level, each.fraction))


def _level(kept: KnownBucket, now: int) -> Level:
    bucket = kept.bucket
    limit = RequestLimit(bucket.capacity, bucket.refill_per_hour)
    age_us = max(0, now - bucket.level_at)
    return Level(kept.name, limit, bucket.level, bucket.fraction, age_us)
