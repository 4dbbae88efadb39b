"""Fixtures for limits on requests: one Redis for each worker, emptied for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.service.limits import bucket_levels
from support.engines.redis_server import RedisServer, redis_server
from support.waiting import HANGS_S


@pytest.fixture(autouse=True)
def patient_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy is slow to read a level, and no request is let through for that."""
    monkeypatch.setattr(bucket_levels, "LOAD_TIMEOUT_S", HANGS_S)


@pytest.fixture(scope="session")
def redis_of_worker() -> Iterator[RedisServer]:
    """The worker's own Redis."""
    with redis_server() as server:
        yield server


@pytest.fixture
def shared_redis(redis_of_worker: RedisServer) -> RedisServer:
    """A Redis that has no keys and no scripts."""
    with redis_of_worker.client() as client:
        client.flushall()
        client.script_flush()
    return redis_of_worker


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis for one test, which may kill it."""
    with redis_server() as server:
        yield server
