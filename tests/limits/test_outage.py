"""Redis that is away, stopped, slow or refusing: each server counts alone, and says so."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from gpucredits.service.limits.redis_limiter import FAILURES_MAX, RedisLimiter
from gpucredits.store.database.answer_timeout import patient_timeout
from gpucredits.store.database.connection import Pool
from gpucredits.store.limits.redis_buckets import CONNECTIONS_WARM, RedisAway, RedisBuckets
from support.engines.redis_server import RedisServer, redis_server
from support.scenes.limits import admitted, ask, play, shared_limiter
from support.waiting import HANGS_S

QUICK_S = 0.2  # for a Redis that will not answer


async def holds_again(limiter: RedisLimiter) -> None:
    """Wait until limits are shared."""
    probing = limiter._probing
    if probing is not None:
        await asyncio.wait_for(asyncio.shield(probing), HANGS_S)
    assert not limiter.health.is_alone


def changes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of Redis."""
    return [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("Redis")
    ]


AWAY = "Redis is away: this server counts requests alone"
BACK = "Redis is back: request limits are shared again"


def test_a_killed_redis_leaves_each_bucket_what_it_had(
    database: str, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is refused what is there, nobody gets more; counted, one line for each change."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=7) == 7
            own_redis.kill()
            assert await admitted(limiter, ask(), tries=50) == 3
            looked_at = await limiter.look(ask())
            assert looked_at is not None
            assert looked_at.level == 0
            assert await admitted(limiter, ask(2), tries=50) == 10  # never seen before
            assert limiter.health.is_alone
            assert limiter.health.passed_alone == 13
            assert limiter.health.let_through == 0
            assert changes(caplog) == [AWAY]
            own_redis.start()
            await holds_again(limiter)
            assert await admitted(limiter, ask(), tries=99) == 0  # a Redis that lost everything
            assert limiter.health.passed_alone == 13
            assert changes(caplog) == [AWAY, BACK]
            told = getattr(caplog.records[-1], "fields", None)
            assert told == {"passed_alone": 11, "let_through": 0}  # two before it was said

    with caplog.at_level(logging.WARNING):
        play(database, act)


def test_without_a_count_of_its_own_a_server_would_let_everything_in(
    database: str, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the outage: a limiter that lets pass what it cannot ask about is seen."""

    async def unasked(*_: object) -> None:
        return None

    monkeypatch.setattr(RedisLimiter, "_draw_alone", unasked)

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=7) == 7
            own_redis.kill()
            assert await admitted(limiter, ask(), tries=50) == 50

    play(database, act)


def test_alone_the_lower_of_what_was_seen_and_what_was_saved_counts(
    database: str, own_redis: RedisServer
) -> None:
    """A server that looked long ago does not give out what another has drawn and saved since."""

    async def act(pool: Pool) -> None:
        async with (
            shared_limiter(pool, own_redis.url) as idle,
            shared_limiter(pool, own_redis.url) as busy,
        ):
            assert await admitted(idle, ask(), tries=1) == 1
            assert await admitted(busy, ask(), tries=7) == 7
            await busy.save()
            own_redis.kill()
            assert await admitted(idle, ask(), tries=50) == 2

    play(database, act)


def asked_in_vain(limiter: RedisLimiter, patch: pytest.MonkeyPatch) -> list[None]:
    """One item for each request that asks Redis from now on; none of them waits for long."""
    asked: list[None] = []
    draw = limiter._buckets.draw

    async def counted(*args: Any, **options: Any) -> Any:
        asked.append(None)
        return await draw(*args, **options)

    patch.setattr(limiter._buckets, "draw", counted)
    patch.setattr(limiter._buckets, "_timeout_s", QUICK_S)
    return asked


def test_a_stopped_redis_costs_a_few_timeouts_and_learns_what_was_drawn(
    database: str, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first requests wait; a Redis that goes on with what it had is told the rest."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), ask(2, capacity=50), tries=2) == 2
            own_redis.signal(signal.SIGSTOP)
            try:
                with monkeypatch.context() as patch:
                    asked = asked_in_vain(limiter, patch)
                    assert await admitted(limiter, ask(2, capacity=50), tries=40) == 40
                    assert await admitted(limiter, ask(), tries=500) == 8
                assert len(asked) == FAILURES_MAX  # and not 540
                assert limiter.health.passed_alone == 48
            finally:
                own_redis.signal(signal.SIGCONT)
            await holds_again(limiter)
            assert await admitted(limiter, ask(2, capacity=50), tries=99) == 8
            assert await admitted(limiter, ask(), tries=99) == 0

    play(database, act)


def test_an_answer_from_before_does_not_undo_what_was_drawn_alone(
    database: str, own_redis: RedisServer
) -> None:
    """A reply that was asked for earlier arrives late: the lower level is kept, and told."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=1) == 1
            early = await limiter._buckets.draw([ask()], [limiter._seen(ask())])
            for _ in range(5):
                assert await limiter._draw_alone([ask()]) is not None
            limiter._remember([ask()], early, limiter._levels.clock())
            assert await admitted(limiter, ask(), tries=99) == 4

    play(database, act)


def test_one_failure_is_no_outage(
    database: str, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Failures below the bound are counted alone, one by one, and the next asks Redis again."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=1) == 1
            with own_redis.client() as client:
                for _ in range(3):
                    client.config_set("min-replicas-to-write", 1)
                    assert await admitted(limiter, ask(), tries=FAILURES_MAX - 1) == 2
                    client.config_set("min-replicas-to-write", 0)
                    assert await admitted(limiter, ask(), tries=1) == 1
            assert await admitted(limiter, ask(), tries=99) == 0
            assert limiter.health.passed_alone == 6
            assert not limiter.health.is_alone

    with caplog.at_level(logging.WARNING):
        play(database, act)
    assert changes(caplog) == []


@pytest.mark.parametrize("is_tcp", [True, False])
def test_lost_connections_are_replaced_and_are_no_outage(
    database: str, own_redis: RedisServer, *, is_tcp: bool
) -> None:
    """Redis restarts between requests: every pooled connection is dead, and nobody notices."""
    assert restarted(database, own_redis, is_tcp=is_tcp) == 0


def test_a_lost_connection_that_is_not_replaced_is_seen(
    database: str, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the restart: with one try, the first requests find no Redis."""
    monkeypatch.setattr(RedisBuckets, "_tried", RedisBuckets._sent)
    assert restarted(database, own_redis, is_tcp=True) > 0


def restarted(database: str, redis: RedisServer, *, is_tcp: bool) -> int:
    """How many requests could not ask Redis after it was restarted, twice."""
    url = redis.tcp_url if is_tcp else redis.url
    alone = []

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, url) as limiter:
            for number in (1, 2):
                bucket = ask(number, capacity=20)
                assert await admitted(limiter, bucket, tries=5) == 5
                redis.kill()
                redis.start()
                counts = [admitted(limiter, bucket, tries=6) for _ in range(10)]
                assert sum(await asyncio.gather(*counts)) == 15
            alone.append(limiter.health.passed_alone)

    play(database, act)
    return alone[0]


def test_an_older_redis_will_do(database: str) -> None:
    """A Redis 5 does not know the greeting of later protocols."""
    with redis_server("--rename-command", "HELLO", "") as server:

        async def act(pool: Pool) -> None:
            async with shared_limiter(pool, server.tcp_url) as limiter:
                assert await admitted(limiter, ask(), tries=20) == 10
                assert limiter.health.passed_alone == 0

        play(database, act)


def test_connections_are_opened_before_the_first_request(
    database: str, own_redis: RedisServer
) -> None:
    """A first burst finds them there."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            with own_redis.client() as client:
                names = [each["name"] for each in client.client_list()]
            assert names.count("gpucredits") >= CONNECTIONS_WARM // 2
            assert await admitted(limiter, ask(), tries=1) == 1

    play(database, act)


def test_a_loop_that_was_busy_is_no_timeout_of_redis(
    database: str, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer lies in the socket while this process does something else for longer."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=1) == 1
            monkeypatch.setattr(limiter._buckets, "_timeout_s", 1.0)
            draw = asyncio.create_task(limiter.draw([ask()]))
            await asyncio.sleep(0)
            threading.Event().wait(1.5)
            assert await draw is not None
            assert limiter.health.passed_alone == 0

    play(database, act)


def test_the_clock_of_a_patient_timeout_stands_while_the_loop_is_busy() -> None:
    """An answer that came in time is heard; a plain timeout would not; none at all still ends."""

    async def heard(bound: Callable[[float], AbstractAsyncContextManager[object]]) -> bool:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        near, far = socket.socketpair()

        def arrive() -> None:
            loop.remove_reader(near)
            answer.set_result(None)

        with near, far:
            near.setblocking(False)
            loop.add_reader(near, arrive)
            try:
                async with bound(0.1):
                    loop.call_soon(far.send, b"x")
                    loop.call_soon(threading.Event().wait, 0.3)
                    await answer
            except TimeoutError:
                return False
            finally:
                loop.remove_reader(near)
            return True

    async def act() -> None:
        assert await heard(patient_timeout)
        assert not await heard(asyncio.timeout)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(HANGS_S), patient_timeout(0.05):
                await asyncio.Event().wait()

    asyncio.run(act())


def test_a_server_that_starts_without_redis_serves(database: str, own_redis: RedisServer) -> None:
    """No Redis at the start: it counts alone at once, and shares as soon as there is one."""

    async def act(pool: Pool) -> None:
        own_redis.kill()
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert limiter.health.is_alone
            assert await admitted(limiter, ask(), tries=6) == 6
            own_redis.start()
            await holds_again(limiter)
            assert await admitted(limiter, ask(), tries=20) == 4

    play(database, act)


def test_a_redis_that_cannot_write_is_away(database: str, own_redis: RedisServer) -> None:
    """One that answers but refuses to write (a replica, a full memory) does not pass the probe."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url) as limiter:
            assert await admitted(limiter, ask(), tries=1) == 1
            with own_redis.client() as client:
                client.config_set("min-replicas-to-write", 1)
                assert await admitted(limiter, ask(), tries=6) == 6
                for _ in range(3):
                    with pytest.raises(RedisAway):
                        await limiter._buckets.probe()
                assert limiter.health.is_alone
                client.config_set("min-replicas-to-write", 0)
            await holds_again(limiter)
            assert await admitted(limiter, ask(), tries=20) == 3

    play(database, act)


def test_a_password_is_used_and_never_told(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """With the right password limits hold; with a wrong one they do not, and no log has it."""
    with redis_server("--requirepass", "right-s3cret") as server:

        async def act(pool: Pool) -> None:
            right = server.url.replace("unix://", "unix://:right-s3cret@")
            wrong = server.url.replace("unix://", "unix://:wrong-s3cret@")
            async with shared_limiter(pool, right) as limiter:
                assert await admitted(limiter, ask(), tries=20) == 10
            async with shared_limiter(pool, wrong) as limiter:
                assert limiter.health.is_alone

        with caplog.at_level(logging.DEBUG):
            play(database, act)
    told = " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert AWAY in told
    assert "s3cret" not in told


def test_an_address_where_nobody_accepts_is_away(database: str) -> None:
    """A port that takes connections and says nothing costs its timeout, not a request."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)

        async def act(pool: Pool) -> None:
            url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
            async with shared_limiter(pool, url, timeout_s=QUICK_S) as limiter:
                assert limiter.health.is_alone
                assert await admitted(limiter, ask(), tries=20) == 10

        play(database, act)
