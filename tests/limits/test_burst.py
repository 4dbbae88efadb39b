"""Bursts on a real server that shares its limits through Redis, which comes and goes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.engines.postgres import TestServer, temporary_directory
from support.engines.redis_server import RedisServer
from support.servers.http import Caller, running_server
from support.waiting import HANGS_S, until

CAPACITY = 20  # and one more an hour, so none within a test
REQUESTS = 40
THREADS = 10
TESTS = Path(__file__).parent.parent
SUSPENDING = ("-m", "support.servers.suspending_server")


@contextmanager
def served(
    postgres: TestServer, redis: RedisServer, program: tuple[str, ...] = ("-m", "gpucredits")
) -> Iterator[Caller]:
    """The administrator of a fresh server with default settings, on its own database."""
    with postgres.database() as dsn, temporary_directory() as folder:
        options = ("--database-url", dsn, "--redis-url", redis.tcp_url)
        with (
            running_server(folder, *options, program=program) as running,
            httpx.Client(base_url=running.url, timeout=HANGS_S) as http,
        ):
            yield Caller(http, running.admin_secret)


def limited(admin: Caller) -> Caller:
    """A new key that may make so many requests at once."""
    made = admin.made("/v1/keys", {"role": "admin"})
    terms = {"capacity": CAPACITY, "refill_per_hour": 1}
    answer = admin.call("PUT", f"/v1/keys/{made['key_id']}/limit", terms)
    assert answer.status_code == 200, answer.text
    return Caller(admin.http, made["secret"])


def passed(caller: Caller) -> int:
    """How many requests of a burst pass; the others are told that they came too fast."""
    with ThreadPoolExecutor(THREADS) as threads:
        found = threads.map(lambda _: caller.get("/v1/prices").status_code, range(REQUESTS))
        statuses = list(found)
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def test_bursts_pass_no_more_than_their_bucket_whatever_redis_does(
    postgres: TestServer, own_redis: RedisServer
) -> None:
    """On a fresh server, after a restart of Redis, while it is stopped, and once it goes on."""
    with served(postgres, own_redis) as admin:
        assert 0 < passed(limited(admin)) <= CAPACITY

        before = limited(admin)
        assert 0 < passed(before) <= CAPACITY
        own_redis.kill()
        own_redis.start()
        assert passed(before) == 0
        assert 0 < passed(limited(admin)) <= CAPACITY

        during, unused = limited(admin), limited(admin)
        own_redis.signal(signal.SIGSTOP)
        try:
            assert passed(during) == CAPACITY  # what is there is given, Redis or not
            health = admin.read("/healthz")
            assert [alarm["name"] for alarm in health["alarms"]] == ["request_limits_alone"]
            assert health["request_limits"]["passed_alone"] >= CAPACITY
        finally:
            own_redis.signal(signal.SIGCONT)
        until(lambda: admin.read("/healthz")["alarms"] == [])
        assert passed(during) == 0
        assert 0 < passed(unused) <= CAPACITY
        assert admin.read("/healthz")["request_limits"]["let_through"] == 0


def test_a_server_that_one_timeout_opens_is_seen(
    postgres: TestServer, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the same burst passes as a whole where a timeout suspends limits."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    with served(postgres, own_redis, SUSPENDING) as admin:
        assert passed(limited(admin)) == REQUESTS
