"""Redis behind TLS: the certificate is checked, and who shows another one is not spoken to."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucredits.store.database.connection import Pool
from support.engines.postgres import temporary_directory
from support.engines.redis_server import RedisServer
from support.scenes.limits import admitted, ask, play, shared_limiter
from support.servers.tls_front import OPENSSL, make_certificate, tls_front

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="no openssl to make a certificate with")


@dataclass(frozen=True)
class Secured:
    """A Redis that is reached through TLS, and the certificate that it shows."""

    port: int
    certificate: Path
    server: RedisServer

    def url(self, host: str = "127.0.0.1", trusted: Path | None = None) -> str:
        """Its address, with whom to trust."""
        given = "" if trusted is None else f"?ssl_ca_certs={trusted}"
        return f"rediss://{host}:{self.port}/0{given}"


@pytest.fixture
def secured(shared_redis: RedisServer) -> Iterator[Secured]:
    """Such a Redis."""
    with temporary_directory() as folder:
        certificate, key = make_certificate(folder, "127.0.0.1")
        with tls_front(certificate, key, shared_redis.path) as port:
            yield Secured(port, certificate, shared_redis)


def test_limits_are_shared_through_tls(database: str, secured: Secured) -> None:
    """With a certificate that is trusted, buckets live in Redis as they do without TLS."""

    async def act(pool: Pool) -> None:
        url = secured.url(trusted=secured.certificate)
        async with shared_limiter(pool, url) as one, shared_limiter(pool, url) as other:
            assert await admitted(one, ask(), tries=7) == 7
            assert await admitted(other, ask(), tries=9) == 3
            assert one.health.passed_alone == other.health.passed_alone == 0
            assert not one.health.is_alone
        with secured.server.client() as client:
            assert client.keys("*:key:*") == ["gpucredits:{acme}:key:1"]

    play(database, act)


def test_a_certificate_that_is_not_trusted_is_refused(
    database: str, secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    """Unknown, or for another name: nothing is asked there, and the server counts alone."""

    async def act(pool: Pool) -> None:
        elsewhere = secured.url(host="localhost", trusted=secured.certificate)
        for url in (secured.url(), elsewhere):
            async with shared_limiter(pool, url) as limiter:
                assert limiter.health.is_alone
                number = 1 + (url == elsewhere)
                assert await admitted(limiter, ask(number), tries=20) == 10
        with secured.server.client() as client:
            assert client.keys("*") == []

    with caplog.at_level(logging.WARNING):
        play(database, act)
    assert "Redis is away: this server counts requests alone" in caplog.messages
