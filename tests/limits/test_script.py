"""The script in Redis counts as the core does, to the last fraction of a token."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis.crc import key_slot

from gpucredits.core.limits import TokenBucket, advance, resize
from gpucredits.core.request_limit import (
    BURST_MAX,
    PER_HOUR_MAX,
    BucketDraw,
    BucketName,
    Holder,
    RequestLimit,
    bucket_of,
)
from gpucredits.store.limits.redis_buckets import NOTHING, Answer, BucketSeen, RedisBuckets, key_of
from support.books.buckets import draw
from support.engines.redis_server import RedisServer
from support.scenes.limits import PATIENT_S, ask

# The same script, with a clock that the test sets: its last argument.
HELD_CLOCK = "local now = tonumber(ARGV[#ARGV])\n"
START = 1_790_000_000_000_000
LIMITS = st.builds(
    RequestLimit,
    st.one_of(st.integers(1, 5), st.integers(1, BURST_MAX)),
    st.one_of(st.integers(1, 10_000), st.integers(1, PER_HOUR_MAX), st.just(PER_HOUR_MAX)),
)
PAUSES = st.one_of(
    st.integers(0, 3), st.integers(0, 5_000_000), st.integers(0, 10**10), st.integers(0, 10**15)
)
STEPS = st.lists(st.tuples(PAUSES, st.integers(0, 9)), min_size=1, max_size=40)


class HeldBuckets(RedisBuckets):
    """Buckets that tell the script what time it is."""

    now = START

    async def _run(self, keys: list[str], values: list[Any], *, timeout_s: float) -> list[Any]:
        return await super()._run(keys, [*values, self.now], timeout_s=timeout_s)


async def draw_at(
    buckets: HeldBuckets,
    asks: Sequence[BucketDraw],
    now: int,
    *,
    seen: Sequence[BucketSeen] | None = None,
    may_make: bool = False,
) -> Answer:
    """Draw at an instant of the test's choice."""
    known = [NOTHING] * len(asks) if seen is None else seen
    buckets.now = now
    return await buckets.draw(asks, known, may_make=may_make)


def held(server: RedisServer) -> HeldBuckets:
    """Buckets whose clock the test holds."""
    return HeldBuckets(server.url, timeout_s=PATIENT_S, clock=HELD_CLOCK)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(limits=st.lists(LIMITS, min_size=1, max_size=3), steps=STEPS, level=st.integers(0, 50))
@example(
    limits=[RequestLimit(BURST_MAX, PER_HOUR_MAX)], steps=[(0, 0), (1, 0), (999_999, 0)], level=0
)
def test_the_script_and_the_core_agree(
    shared_redis: RedisServer,
    limits: list[RequestLimit],
    steps: list[tuple[int, int]],
    level: int,
) -> None:
    """Over random terms, changes of terms, pauses and draws: same verdict, level and fraction."""
    name = BucketName(1, Holder.KEY, 1, "acme")

    async def act() -> None:
        buckets = held(shared_redis)
        now = START
        first = BucketDraw(name, limits[0])
        model: TokenBucket = bucket_of(first, level=level, fraction=7, level_at=now)
        seed = [BucketSeen("", level, 7, 0)]
        with shared_redis.client() as client:
            client.flushall()
        for number, (pause, choice) in enumerate(steps):
            now += pause
            limit = limits[choice % len(limits)] if number else limits[0]
            if (model.capacity, model.refill_per_hour) != (limit.capacity, limit.refill_per_hour):
                resize(
                    model, capacity=limit.capacity, refill_per_hour=limit.refill_per_hour, now=now
                )
            if number == 0:
                model.level_at = now  # it is made at the first draw
            expected = draw(model, 1, now)
            answer = await draw_at(
                buckets,
                [BucketDraw(name, limit)],
                now,
                seen=seed if number == 0 else None,
                may_make=number == 0,
            )
            assert answer.is_drawn is expected
            assert answer.buckets[0][:2] == (model.level, model.fraction)
            assert answer.now == now
        await buckets.close()

    asyncio.run(act())


def test_all_buckets_of_a_request_are_drawn_from_or_none(shared_redis: RedisServer) -> None:
    """An empty bucket of the org leaves the key's untouched, and the other way round."""

    async def act() -> None:
        buckets = held(shared_redis)
        asks = [ask(), ask(holder=Holder.ORG)]
        for levels in ([3, 0], [0, 3]):
            with shared_redis.client() as client:
                client.flushall()
            seeds = [BucketSeen("", level, 0, 0) for level in levels]
            answer = await draw_at(buckets, asks, START, seen=seeds, may_make=True)
            assert answer.is_there
            assert not answer.is_drawn
            assert [level for level, _, _ in answer.buckets] == levels
        await buckets.close()

    asyncio.run(act())


def test_nothing_is_made_from_nothing(shared_redis: RedisServer) -> None:
    """A bucket that is not there is said to be so, and none beside it is drawn from."""

    async def act() -> None:
        buckets = held(shared_redis)
        key, org = ask(), ask(holder=Holder.ORG)
        await draw_at(buckets, [key], START, seen=[BucketSeen("", 3, 0, 0)], may_make=True)
        answer = await draw_at(buckets, [key, org], START)
        assert not answer.is_there
        assert [level for level, _, _ in answer.buckets] == [2, -1]
        with shared_redis.client() as client:
            assert client.keys() == [key_of(key.name)]
            assert client.hget(key_of(key.name), "level") == "2"
        await buckets.close()

    asyncio.run(act())


def test_who_knows_of_less_is_believed_after_a_bucket_was_made_anew(
    shared_redis: RedisServer,
) -> None:
    """A replica that saw the bucket lower than the one that made it again brings it down, once."""

    async def act() -> None:
        buckets = held(shared_redis)
        bucket = ask()
        made = await draw_at(
            buckets, [bucket], START, seen=[BucketSeen("", 9, 0, 0)], may_make=True
        )
        assert made.buckets[0][0] == 8
        lower = await draw_at(buckets, [bucket], START, seen=[BucketSeen("before", 2, 0, 0)])
        assert lower.buckets[0][0] == 1
        epoch = lower.buckets[0][2]
        same = await draw_at(buckets, [bucket], START, seen=[BucketSeen(epoch, 0, 0, 0)])
        assert same.is_drawn  # of a bucket that it has seen, Redis knows best
        await buckets.close()

    asyncio.run(act())


def test_a_clock_that_went_back_freezes_no_bucket(shared_redis: RedisServer) -> None:
    """After another machine with an earlier clock took over, the bucket fills from then on."""

    async def act() -> None:
        buckets = held(shared_redis)
        bucket = ask(capacity=1, refill_per_hour=3_600)
        await draw_at(buckets, [bucket], START, seen=[BucketSeen("", 1, 0, 0)], may_make=True)
        earlier = START - 3_600_000_000
        assert not (await draw_at(buckets, [bucket], earlier)).is_drawn
        assert not (await draw_at(buckets, [bucket], earlier + 999_999)).is_drawn
        assert (await draw_at(buckets, [bucket], earlier + 1_000_000)).is_drawn
        await buckets.close()

    asyncio.run(act())


def test_the_script_is_sent_again_when_redis_has_lost_it(shared_redis: RedisServer) -> None:
    """After SCRIPT FLUSH the next draw works."""

    async def act() -> None:
        buckets = held(shared_redis)
        bucket = ask()
        await draw_at(buckets, [bucket], START, seen=[BucketSeen("", 9, 0, 0)], may_make=True)
        with shared_redis.client() as client:
            client.script_flush()
        assert (await draw_at(buckets, [bucket], START)).buckets[0][0] == 7
        await buckets.close()

    asyncio.run(act())


def test_idle_buckets_leave_redis(shared_redis: RedisServer) -> None:
    """Every bucket has an end, so that keys which are not used any more take no room."""

    async def act() -> None:
        buckets = RedisBuckets(shared_redis.url, timeout_s=PATIENT_S)
        await buckets.draw([ask()], [BucketSeen("", 9, 0, 0)], may_make=True)
        await buckets.close()

    asyncio.run(act())
    with shared_redis.client() as client:
        assert 0 < int(client.pttl(key_of(ask().name))) <= 3_600_000


def test_keys_of_one_request_live_on_one_node() -> None:
    """A cluster puts the buckets of a request in one slot, and those of other orgs elsewhere."""
    names = [ask(org=org, number=n).name for org in ("acme", "beta") for n in (1, 2)]
    names += [ask(org=org, holder=Holder.ORG).name for org in ("acme", "beta")]
    slots: dict[str, set[int]] = {"acme": set(), "beta": set()}
    for name in names:
        slots[name.org].add(key_slot(key_of(name).encode()))
    assert [len(found) for found in slots.values()] == [1, 1]
    assert slots["acme"] != slots["beta"]
    assert key_of(names[0]) == "gpucredits:{acme}:key:1"


def test_no_two_buckets_share_a_key() -> None:
    """Orgs named like parts of our keys, and keys of the whole system, stay apart."""
    orgs = ("", "key", "org", "system", "acme", "acme.key", "key-1", "probe")
    names = [ask(org=org, number=n).name for org in orgs for n in (1, 11)]
    names += [ask(org=org, holder=Holder.ORG).name for org in orgs if org]
    assert len({key_of(name) for name in names}) == len(names)
    assert "gpucredits:{probe}:probe" not in {key_of(name) for name in names}


def test_the_core_agrees_with_itself_however_often_it_looks() -> None:
    """The control of the comparison: looking in between changes nothing, so steps may be split."""
    bucket = ask(capacity=1_000, refill_per_hour=12_345)
    one = bucket_of(bucket, level=0, fraction=0, level_at=START)
    other = bucket_of(bucket, level=0, fraction=0, level_at=START)
    for step in range(1, 1_000):
        advance(one, (), START + step * 777_777)
    advance(other, (), START + 999 * 777_777)
    assert (one.level, one.fraction) == (other.level, other.fraction)
