"""A real server for the tests of the commands, and a way to run them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer, temporary_server
from gpucredits.client import Client
from support.mornings import until_morning
from support.scenes.orgs import new_org
from support.terminal import Terminal


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run commands where no server left its data: a checkout in use has ``gpucredits-data``."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def server() -> Iterator[TemporaryServer]:
    """A server with a test clock, started when a test first wants it."""
    with temporary_server() as running:
        yield running


@pytest.fixture
def client(server: TemporaryServer) -> Iterator[Client]:
    """A client, to set the stage."""
    with Client(server.url, server.key) as connected:
        yield connected


@pytest.fixture
def terminal(server: TemporaryServer) -> Terminal:
    """Somebody at a command line."""
    return Terminal(server)


@pytest.fixture
def org(client: Client) -> str:
    """A fresh org, in which an h100 costs a credit a second, hours before any midnight."""
    client.advance_clock(until_morning(client.advance_clock(0).now))
    return new_org(client)


@pytest.fixture
def name() -> str:
    """A name that nothing else has."""
    return f"name-{secrets.token_hex(6)}"
