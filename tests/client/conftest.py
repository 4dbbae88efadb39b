"""A real server for the tests of the client, and a faulty proxy before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer, temporary_server
from gpucredits.client import Client, Retry
from support.faults.faulty_proxy import FaultyProxy, faulty_proxy
from support.scenes.orgs import new_org
from support.waiting import HANGS_S

QUICK = Retry(pause_s_first=0.01, pause_s_max=0.05, attempt_timeout_s=60.0, deadline_s=HANGS_S)


@pytest.fixture(scope="session")
def server() -> Iterator[TemporaryServer]:
    """A server with a test clock, started when a test first wants it."""
    with temporary_server() as running:
        yield running


@pytest.fixture
def direct(server: TemporaryServer) -> Iterator[Client]:
    """A client that speaks to the server itself."""
    with Client(server.url, server.key, retry=QUICK) as client:
        yield client


@pytest.fixture
def proxy(server: TemporaryServer) -> Iterator[FaultyProxy]:
    """A faulty proxy before the server."""
    with faulty_proxy(server.url) as running:
        yield running


@pytest.fixture
def client(server: TemporaryServer, proxy: FaultyProxy) -> Iterator[Client]:
    """A client that speaks to the server through the proxy."""
    with Client(proxy.url, server.key, retry=QUICK) as through:
        yield through


@pytest.fixture
def org(direct: Client) -> str:
    """A fresh org."""
    return new_org(direct)
