"""What is saved of request buckets, and what is believed of what comes back."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.jobs.bucket_saver import BucketSaver
from gpucredits.service.limits import bucket_levels
from gpucredits.service.limits.bucket_levels import Levels
from gpucredits.service.limits.limiter import ProcessLimiter
from gpucredits.service.limits.redis_limiter import LATE_US_MAX, RedisLimiter
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.limits.redis_buckets import Answer, RedisBuckets
from support.scenes.limits import HeldClock, admitted, ask, play
from support.waiting import HANGS_S

NEVER_S = 10_000.0


def test_levels_are_saved_when_a_server_stops(database: str) -> None:
    """A saver that never ticks again saves everything at its end."""

    async def act(pool: Pool) -> None:
        saver = BucketSaver(ProcessLimiter(Levels(pool)), rest_s=NEVER_S)
        await saver.start()
        await saver.tick()
        assert await admitted(saver.limiter, ask(), tries=4) == 4
        await saver.stop()
        assert await pool.fetchval("SELECT level FROM request_buckets") == 6

    play(database, act)


def test_a_stop_without_a_database_ends(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be saved is tried, given up and told; nothing hangs or breaks or runs on."""

    async def act(pool: Pool) -> None:
        saver = BucketSaver(ProcessLimiter(Levels(pool)), rest_s=NEVER_S)
        await saver.start()
        await admitted(saver.limiter, ask(), tries=4)
        await pool.close()
        assert len(asyncio.all_tasks()) > 1
        await saver.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert "were not saved" in caplog.text

    play(database, act)


def test_what_could_not_be_saved_is_saved_next_time(database: str) -> None:
    """A save that fails forgets nothing."""

    async def act(pool: Pool) -> None:
        levels = Levels(pool)
        limiter = ProcessLimiter(levels)
        await admitted(limiter, ask(), tries=4)
        await pool.close()
        with pytest.raises(Unavailable):
            await limiter.save()
        assert levels.changed == {ask().name}

    play(database, act)


def test_a_database_that_is_slow_holds_no_request_for_long(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that somebody has locked: the request passes, counted, while the lock still holds.

    The bound is short for that one request only: a slow machine is no locked table.
    """

    async def act(pool: Pool) -> None:
        limiter = ProcessLimiter(Levels(pool))
        monkeypatch.setattr(bucket_levels, "LOAD_TIMEOUT_S", HANGS_S)
        async with pool.acquire() as other, other.transaction():
            await other.execute("LOCK TABLE request_buckets IN ACCESS EXCLUSIVE MODE")
            with monkeypatch.context() as patch:
                patch.setattr(bucket_levels, "LOAD_TIMEOUT_S", 0.1)
                async with asyncio.timeout(HANGS_S):
                    assert await limiter.draw([ask()]) is None
        assert limiter.health.let_through == 1
        assert await admitted(limiter, ask(), tries=99) == 10
        assert limiter.health.let_through == 1

    play(database, act, lock_timeout_s=2 * HANGS_S)  # the database itself would wait for longer


def test_an_answer_that_arrives_late_changes_nothing(database: str) -> None:
    """Of two answers about one bucket the one that Redis gave later is remembered.

    After a new epoch, or where Redis's clock went back by far, what arrives is believed.
    """

    async def act(pool: Pool) -> None:
        clock = HeldClock()
        levels = Levels(pool, clock=clock)
        limiter = RedisLimiter(RedisBuckets("redis://127.0.0.1:1"), levels)

        def seen_after(*, level: int, epoch: str, shared_at: int) -> int:
            answer = Answer(True, True, shared_at, [(level, 0, epoch)])
            limiter._remember([ask()], answer, clock())
            return levels.kept[ask().name].bucket.level

        assert seen_after(level=5, epoch="1", shared_at=10**9) == 5
        assert seen_after(level=6, epoch="1", shared_at=10**9 - 1) == 5
        assert seen_after(level=4, epoch="1", shared_at=10**9 + 1) == 4
        assert seen_after(level=9, epoch="2", shared_at=10**9 - 1) == 9
        assert seen_after(level=8, epoch="2", shared_at=10**9 - 1 - LATE_US_MAX) == 8
        await limiter.stop()

    play(database, act)
