"""Limiters: what passes in one process and over several, and what survives which loss."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.core.limits import TokenBucket
from gpucredits.core.request_limit import (
    BucketDraw,
    Holder,
    RequestStanding,
    bucket_of,
    standing_of,
)
from gpucredits.service.limits import bucket_levels
from gpucredits.service.limits.bucket_levels import Levels
from gpucredits.service.limits.limiter import Limiter, ProcessLimiter
from gpucredits.service.limits.redis_limiter import RedisLimiter
from gpucredits.store.clock import advance_clock
from gpucredits.store.database.connection import Pool
from gpucredits.store.limits.redis_buckets import NOTHING
from gpucredits.store.limits.request_limits import load_levels
from support.engines.redis_server import RedisServer
from support.scenes.limits import HeldClock, admitted, ask, play, shared_limiter


async def look(limiter: Limiter, wanted: BucketDraw) -> RequestStanding:
    """How a bucket stands."""
    return standing_of(wanted, await limiter.look(wanted))


def test_a_process_admits_its_burst_and_then_its_refill(database: str) -> None:
    """Capacity at once, then one for each refill, and never more than capacity after a rest."""

    async def act(pool: Pool) -> None:
        clock = HeldClock()
        limiter = ProcessLimiter(Levels(pool, clock=clock))
        bucket = ask(capacity=5, refill_per_hour=3_600)
        assert await admitted(limiter, bucket, tries=9) == 5
        verdict = await limiter.draw([bucket])
        assert verdict is not None
        assert (verdict.is_drawn, verdict.left) == (False, 0)
        assert (verdict.clears_in_us, verdict.full_in_us) == (1_000_000, 5_000_000)
        clock.advance(2)
        assert await admitted(limiter, bucket, tries=9) == 2
        clock.advance(3_600)
        assert await admitted(limiter, bucket, tries=9) == 5

    play(database, act)


def test_a_key_is_bound_by_its_org_too(database: str) -> None:
    """Two keys share their org's bucket; a request that the org's bucket denies costs no token."""

    async def act(pool: Pool) -> None:
        limiter = ProcessLimiter(Levels(pool, clock=HeldClock()))
        org = ask(holder=Holder.ORG, capacity=3)
        assert await admitted(limiter, ask(1), org, tries=2) == 2
        assert await admitted(limiter, ask(2), org, tries=9) == 1
        verdict = await limiter.draw([ask(2), org])
        assert verdict is not None
        assert verdict.ask is org
        assert await admitted(limiter, ask(2), tries=20) == 9  # its own bucket lost one token

    play(database, act)


def test_a_look_draws_nothing(database: str, shared_redis: RedisServer) -> None:
    """In a process and in Redis: it shows what is left, by new terms too, and takes no token."""

    async def act(pool: Pool) -> None:
        clock = HeldClock()
        alone = ProcessLimiter(Levels(pool, clock=clock))
        terms = ask(capacity=5, refill_per_hour=3_600)
        assert (await look(alone, terms)).left == 5
        assert await admitted(alone, terms, tries=3) == 3
        for _ in range(9):
            assert await look(alone, terms) == RequestStanding(terms, 2, 3_000_000)
        smaller = ask(capacity=1, refill_per_hour=3_600)
        assert await look(alone, smaller) == RequestStanding(smaller, 1, 0)
        clock.advance(1)
        assert await admitted(alone, terms, tries=9) == 3
        async with shared_limiter(pool, shared_redis.url) as shared:
            slow = ask(7, capacity=5)
            assert (await look(shared, slow)).left == 5
            with shared_redis.client() as redis:
                assert redis.dbsize() == 1  # the bucket of the probe
            assert await admitted(shared, slow, tries=3) == 3
            async with shared_limiter(pool, shared_redis.url) as other:
                for _ in range(9):
                    assert (await look(other, slow)).left == 2
            assert (await look(shared, ask(7, capacity=1))).left == 1
            assert await admitted(shared, slow, tries=9) == 2

    play(database, act)


def test_a_restart_keeps_levels(database: str) -> None:
    """A new process goes on from what was saved, with the time since, not from a full bucket."""

    async def act(pool: Pool) -> None:
        bucket = ask(capacity=10, refill_per_hour=3_600)
        first = ProcessLimiter(Levels(pool, clock=HeldClock()))
        assert await admitted(first, bucket, tries=99) == 10
        while await first.save():
            pass
        second = ProcessLimiter(Levels(pool, clock=HeldClock()))
        passed = await admitted(second, bucket, tries=99)
        assert passed < 10  # what a slow machine may have regained
        await second.save()
        await advance_clock(pool, 4_000_000)
        third = ProcessLimiter(Levels(pool, clock=HeldClock()))
        assert 4 <= await admitted(third, bucket, tries=99) < 10

    play(database, act)


def test_a_process_that_saved_nothing_would_start_full(database: str) -> None:
    """The control of the restart: without the save, the next process knows nothing."""

    async def act(pool: Pool) -> None:
        first = ProcessLimiter(Levels(pool, clock=HeldClock()))
        await admitted(first, ask(), tries=99)
        second = ProcessLimiter(Levels(pool, clock=HeldClock()))
        assert await admitted(second, ask(), tries=99) == 10

    play(database, act)


def test_new_terms_hand_out_no_fresh_bucket(database: str, shared_redis: RedisServer) -> None:
    """Raising a capacity leaves the tokens as they are; lowering it lets the surplus spill."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, shared_redis.url) as shared:
            for limiter in (ProcessLimiter(Levels(pool, clock=HeldClock())), shared):
                number = id(limiter)
                assert await admitted(limiter, ask(number, capacity=5), tries=4) == 4
                assert await admitted(limiter, ask(number, capacity=500), tries=9) == 1
                await admitted(limiter, ask(number + 1, capacity=50), tries=1)
                assert await admitted(limiter, ask(number + 1, capacity=5), tries=99) == 5

    play(database, act)


def test_replicas_on_one_redis_admit_no_more_than_one_would(
    database: str, shared_redis: RedisServer
) -> None:
    """Two limiters drawing at once from a key's and an org's bucket admit its capacity in all."""

    async def act(pool: Pool) -> None:
        asks = [ask(capacity=200), ask(holder=Holder.ORG, capacity=120)]
        async with (
            shared_limiter(pool, shared_redis.url) as one,
            shared_limiter(pool, shared_redis.url) as other,
        ):
            counts = await asyncio.gather(
                *(admitted(each, *asks, tries=50) for each in (one, other) * 4)
            )
            assert sum(counts) == 120
            assert one.health.let_through == other.health.let_through == 0

    play(database, act)


def test_replicas_without_a_shared_home_admit_a_share_each(database: str) -> None:
    """The control of sharing: two processes on their own admit twice the capacity."""

    async def act(pool: Pool) -> None:
        limiters = [ProcessLimiter(Levels(pool, clock=HeldClock())) for _ in range(2)]
        assert [await admitted(each, ask(), tries=99) for each in limiters] == [10, 10]

    play(database, act)


async def flushed_under_load(pool: Pool, server: RedisServer, asks: list[BucketDraw]) -> list[int]:
    """How many requests of each tenant two replicas admit while Redis is emptied again and again.

    The first round is saved, and each replica knows other tenants best.
    """
    counts = [0] * len(asks)
    async with shared_limiter(pool, server.url) as one, shared_limiter(pool, server.url) as other:
        limiters = (one, other)
        with server.client() as client:
            for number in range(6):

                async def load(position: int, bucket: BucketDraw, number: int = number) -> None:
                    limiter = limiters[(position + number) % 2]
                    counts[position] += await admitted(limiter, bucket, tries=12)

                tasks = [asyncio.create_task(load(*each)) for each in enumerate(asks)]
                await asyncio.sleep(0)
                client.flushall()
                await asyncio.gather(*tasks)
                client.flushall()
                await one.save()
                await other.save()
    return counts


def test_a_flush_under_load_gives_no_tenant_a_fresh_bucket(
    database: str, shared_redis: RedisServer
) -> None:
    """Emptied twelve times under load, Redis still lets each tenant have its capacity only."""

    async def act(pool: Pool) -> None:
        asks = [ask(n, org=f"org{n}", org_id=n, capacity=20) for n in range(1, 9)]
        counts = await flushed_under_load(pool, shared_redis, asks)
        # A flush between a draw and its answer may forget that one draw.
        assert all(20 <= count <= 20 + 12 for count in counts), counts

    play(database, act)


def test_without_what_is_known_a_flush_would_fill_every_bucket(
    database: str, shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the flush: with fresh buckets the same load passes, all of it."""

    async def fresh(self: Levels, bucket: BucketDraw) -> TokenBucket:
        return bucket_of(bucket, level=bucket.limit.capacity, fraction=0, level_at=self.clock())

    monkeypatch.setattr(Levels, "best_known", fresh)
    monkeypatch.setattr(RedisLimiter, "_seen", lambda *_: NOTHING)

    async def act(pool: Pool) -> None:
        asks = [ask(n, org=f"org{n}", org_id=n, capacity=20) for n in range(1, 9)]
        counts = await flushed_under_load(pool, shared_redis, asks)
        assert all(count == 6 * 12 for count in counts), counts

    play(database, act)


def test_a_bucket_that_was_never_saved_comes_back_as_it_was_seen(
    database: str, shared_redis: RedisServer
) -> None:
    """A flush before the first save: the process's own memory is what the bucket starts from."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, shared_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=7) == 7
            assert await pool.fetchval("SELECT count(*) FROM request_buckets") == 0
            with shared_redis.client() as client:
                client.flushall()
            assert await admitted(limiter, ask(), tries=99) == 3

    play(database, act)


def test_a_new_replica_on_an_empty_redis_starts_from_what_was_saved(
    database: str, shared_redis: RedisServer
) -> None:
    """It has seen nothing, Redis has nothing: the database's level counts."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, shared_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=7) == 7
            await limiter.save()
        with shared_redis.client() as client:
            client.flushall()
        async with shared_limiter(pool, shared_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=99) == 3

    play(database, act)


def test_of_memory_and_database_the_lower_level_counts(
    database: str, shared_redis: RedisServer
) -> None:
    """A replica that looked long ago does not bring back what another one has drawn since."""

    async def act(pool: Pool) -> None:
        async with (
            shared_limiter(pool, shared_redis.url) as idle,
            shared_limiter(pool, shared_redis.url) as busy,
        ):
            assert await admitted(idle, ask(), tries=1) == 1
            assert await admitted(busy, ask(), tries=7) == 7
            await busy.save()
            with shared_redis.client() as client:
                client.flushall()
            assert await admitted(idle, ask(), tries=99) == 2

    play(database, act)


def test_the_later_look_is_saved(database: str, shared_redis: RedisServer) -> None:
    """A replica that saves what it saw earlier does not overwrite what another saw later."""

    async def act(pool: Pool) -> None:
        async with (
            shared_limiter(pool, shared_redis.url) as early,
            shared_limiter(pool, shared_redis.url) as late,
        ):
            await admitted(early, ask(), tries=2)
            await admitted(late, ask(), tries=5)
            await late.save()
            await early.save()
        [level] = (await load_levels(pool, [ask().name])).values()
        assert level.level == 3
        assert (level.limit.capacity, level.limit.refill_per_hour) == (10, 1)

    play(database, act)


def test_saving_is_bounded_and_goes_on(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement has a largest size; what is left comes with the next, and nothing twice."""
    monkeypatch.setattr(bucket_levels, "SAVED_ROWS_MAX", 4)

    async def act(pool: Pool) -> None:
        limiter = ProcessLimiter(Levels(pool))
        for number in range(10):
            await limiter.draw([ask(number)])
        assert [await limiter.save() for _ in range(4)] == [True, True, False, False]
        assert await pool.fetchval("SELECT count(*) FROM request_buckets") == 10

    play(database, act)


def test_memory_is_bounded_and_what_it_forgets_is_saved(database: str) -> None:
    """Beyond the bound the oldest buckets leave, and come back from the database as they were."""

    async def act(pool: Pool) -> None:
        levels = Levels(pool, clock=HeldClock(), kept_max=3)
        limiter = ProcessLimiter(levels)
        for number in range(8):
            assert await admitted(limiter, ask(number), tries=6) == 6
        assert len(levels.kept) == 8  # nothing unsaved is forgotten
        await limiter.save()
        assert len(levels.kept) == 3
        assert await admitted(limiter, ask(0), tries=99) == 4

    play(database, act)


def test_many_buckets_are_read_together(
    database: str, shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a flush, requests that arrive together cost the database one statement."""
    statements = []

    async def counted(pool: Pool, names: list[object]) -> object:
        statements.append(len(names))
        return await load_levels(pool, names)  # type: ignore[arg-type]

    monkeypatch.setattr(bucket_levels, "load_levels", counted)

    async def act(pool: Pool) -> None:
        limiter = ProcessLimiter(Levels(pool))
        await asyncio.gather(*(limiter.draw([ask(number % 20)]) for number in range(100)))

    play(database, act)
    assert statements == [20]


def test_a_database_that_cannot_say_lets_requests_through_and_counts_them(
    database: str, shared_redis: RedisServer
) -> None:
    """Nobody gets a fresh bucket, nobody is locked out, and somebody can see it."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, shared_redis.url) as shared:
            alone = ProcessLimiter(Levels(pool))
            assert await admitted(shared, ask(7), tries=4) == 4
            await pool.execute("ALTER TABLE request_buckets RENAME TO away")
            await pool.close()
            for limiter in (alone, shared):
                assert await limiter.draw([ask(8)]) is None
                assert limiter.health.let_through == 1
                assert not limiter.health.is_alone
            with shared_redis.client() as client:
                assert client.keys("*key:8") == []
                client.flushall()
            assert await admitted(shared, ask(7), tries=99) == 6  # memory is enough

    play(database, act)
