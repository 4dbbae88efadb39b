"""Redis that is away, stopped, slow or refusing: requests pass, are counted, limits come back."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time

import pytest

from gpucredits.service.redis_limiter import RedisLimiter
from gpucredits.store.connection import Pool
from gpucredits.store.redis_buckets import RedisAway
from support.limits import admitted, ask, play, shared_limiter
from support.redis_server import RedisServer, redis_server

QUICK_S = 1.0
BACK_TIMEOUT_S = 20.0


async def holds_again(limiter: RedisLimiter) -> None:
    """Wait until limits hold."""
    probing = limiter._probing
    if probing is not None:
        await asyncio.wait_for(asyncio.shield(probing), BACK_TIMEOUT_S)
    assert not limiter.health.is_open


def changes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of Redis."""
    return [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("Redis")
    ]


AWAY = "Redis is away: request limits are suspended"
BACK = "Redis is back: request limits hold again"


def test_a_killed_redis_lets_requests_through_until_it_is_back(
    database: str, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Fail open, counted, one line for each change; afterwards the buckets are as they were."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url, timeout_s=QUICK_S) as limiter:
            assert await admitted(limiter, ask(), tries=7) == 7
            own_redis.kill()
            assert await admitted(limiter, ask(), tries=50) == 50
            assert limiter.health.is_open
            assert limiter.health.let_through == 50
            assert await limiter.look(ask()) is None
            assert limiter.health.let_through == 50  # whoever looks makes no request
            assert changes(caplog) == [AWAY]
            own_redis.start()
            await holds_again(limiter)
            assert await admitted(limiter, ask(), tries=99) == 3  # a Redis that lost everything
            assert limiter.health.let_through == 50
            assert changes(caplog) == [AWAY, BACK]
            assert getattr(caplog.records[-1], "fields", None) == {"let_through": 50}

    with caplog.at_level(logging.WARNING):
        play(database, act)


def test_a_stopped_redis_costs_one_timeout_and_no_more(
    database: str, own_redis: RedisServer
) -> None:
    """While it does not answer, only the first request waits; the others pass at once."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url, timeout_s=QUICK_S) as limiter:
            assert await admitted(limiter, ask(), tries=2) == 2
            own_redis.signal(signal.SIGSTOP)
            try:
                began = time.monotonic()
                assert await admitted(limiter, ask(), tries=500) == 500
                assert time.monotonic() - began < 10 * QUICK_S  # 500 timeouts would be 500 s
                assert limiter.health.let_through == 500
            finally:
                own_redis.signal(signal.SIGCONT)
            await holds_again(limiter)
            # The draw that timed out may have been carried out when it went on.
            assert await admitted(limiter, ask(), tries=99) in (7, 8)

    play(database, act)


def test_a_server_that_starts_without_redis_serves(database: str, own_redis: RedisServer) -> None:
    """No Redis at the start: open at once, and held as soon as there is one."""

    async def act(pool: Pool) -> None:
        own_redis.kill()
        async with shared_limiter(pool, own_redis.url, timeout_s=QUICK_S) as limiter:
            assert limiter.health.is_open
            assert await admitted(limiter, ask(), tries=20) == 20
            own_redis.start()
            await holds_again(limiter)
            assert await admitted(limiter, ask(), tries=20) == 10

    play(database, act)


def test_a_redis_that_cannot_write_is_away(database: str, own_redis: RedisServer) -> None:
    """One that answers but refuses to write (a replica, a full memory) does not pass the probe."""

    async def act(pool: Pool) -> None:
        async with shared_limiter(pool, own_redis.url, timeout_s=QUICK_S) as limiter:
            assert await admitted(limiter, ask(), tries=1) == 1
            with own_redis.client() as client:
                client.config_set("min-replicas-to-write", 1)
                assert await admitted(limiter, ask(), tries=20) == 20
                for _ in range(3):
                    with pytest.raises(RedisAway):
                        await limiter._buckets.probe()
                assert limiter.health.is_open
                client.config_set("min-replicas-to-write", 0)
            await holds_again(limiter)
            assert await admitted(limiter, ask(), tries=20) == 9

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
                assert limiter.health.is_open

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
                assert limiter.health.is_open
                assert await admitted(limiter, ask(), tries=20) == 20

        play(database, act)
