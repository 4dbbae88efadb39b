"""A real server for the tests of running jobs, and launchers as real processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer, temporary_server
from gpucredits.client import Client
from support.scenes.orgs import new_org
from support.servers.launchers import Launchers


@pytest.fixture(scope="session")
def server() -> Iterator[TemporaryServer]:
    """A server with a test clock, started when a test first wants it."""
    with temporary_server() as running:
        yield running


@pytest.fixture
def client(server: TemporaryServer) -> Iterator[Client]:
    """A client, to set the stage and to read the bill."""
    with Client(server.url, server.key) as connected:
        yield connected


@pytest.fixture
def org(client: Client) -> str:
    """A fresh org with credits, in which an h100 costs a credit a second."""
    path = new_org(client)
    client.issue(path, "100000")
    return path


@pytest.fixture
def launchers(server: TemporaryServer, state: Path) -> Iterator[Launchers]:
    """Starts launchers, and ends those that a test leaves, before the agent's folder goes."""
    del state
    with Launchers(server) as started:
        yield started


@pytest.fixture
def state() -> Iterator[Path]:
    """The agent's folder; paths of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="gca-") as folder:
        yield Path(folder)
