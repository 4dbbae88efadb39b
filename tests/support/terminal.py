"""Somebody at a command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from click.testing import CliRunner, Result

from gpucredits.cli.main import main


class Addressed(Protocol):
    """A server with an address and a key."""

    @property
    def url(self) -> str:
        """Where it listens."""

    @property
    def key(self) -> str:
        """Its admin's secret."""

    @property
    def data_dir(self) -> Path:
        """Where its data is."""


class Terminal:
    """Somebody at a command line, whose environment names the server and a key."""

    def __init__(self, server: Addressed) -> None:
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
