"""A real server for the tests of the commands, and a way to run them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpucredits.cli.demo.server import DemoServer, demo_server
from gpucredits.cli.main import main
from gpucredits.client import Client
from support.orgs import new_org


class Terminal:
    """Somebody at a command line, whose environment names the server and a key."""

    def __init__(self, server: DemoServer) -> None:
        self.server = server
        self.env: dict[str, str | None] = {
            "GPUCREDITS_URL": server.url,
            "GPUCREDITS_API_KEY": server.key,
            "GPUCREDITS_DATA_DIR": None,
            "NO_COLOR": None,
            "FORCE_COLOR": None,
        }

    def run(self, *words: str, **env: str | None) -> Result:
        """Run a command; bugs come through as they are."""
        return CliRunner().invoke(main, list(words), env={**self.env, **env})

    def text(self, *words: str) -> str:
        """What a command that must succeed prints for people."""
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.stdout
        return result.stdout

    def json(self, *words: str) -> Any:
        """What a command that must succeed prints for scripts."""
        result = self.run(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture(scope="session")
def server() -> Iterator[DemoServer]:
    """A server with a test clock, started when a test first wants it."""
    with demo_server() as running:
        yield running


@pytest.fixture
def client(server: DemoServer) -> Iterator[Client]:
    """A client, to set the stage."""
    with Client(server.url, server.key) as connected:
        yield connected


@pytest.fixture
def terminal(server: DemoServer) -> Terminal:
    """Somebody at a command line."""
    return Terminal(server)


@pytest.fixture
def org(client: Client) -> str:
    """A fresh org, in which an h100 costs a credit a second."""
    return new_org(client)


@pytest.fixture
def name() -> str:
    """A name that nothing else has."""
    return f"name-{secrets.token_hex(6)}"
