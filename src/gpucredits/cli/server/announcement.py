"""What a server says when it listens: on standard output, and in a file of its data directory.

Owns: the words, the JSON of ``serve --json``, and the file for as long as the server listens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from gpucredits.app import Config
from gpucredits.cli.terminal.address import FILE, ServerFile
from gpucredits.store.embedded.private import write_file


@contextmanager
def announced(config: Config, url: str, *, as_json: bool) -> Iterator[None]:
    """Say where the server listens, and keep it in the data directory for as long as it does."""
    with written(config.data_dir, url):
        announce(config, url, as_json=as_json)
        yield


@contextmanager
def written(data_dir: Path, url: str) -> Iterator[None]:
    """Say in the data directory where the server listens, for as long as it does."""
    path = data_dir / FILE
    write_file(path, msgspec.json.encode(ServerFile(url)) + b"\n", mode=0o644)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def announce(config: Config, url: str, *, as_json: bool) -> None:
    """Print where the server listens and where its data and key are."""
    has_key = config.admin_key_path.exists()
    facts = {
        "url": url,
        "data_dir": str(config.data_dir),
        "admin_key": str(config.admin_key_path) if has_key else None,
        "database": "external" if config.database_url else "embedded",
        "test_clock": config.test_clock,
    }
    if as_json:
        click.echo(json.dumps(facts))
    else:
        click.echo(f"gpucredits listens on {facts['url']}")
        click.echo(f"  data       {facts['data_dir']} ({facts['database']} PostgreSQL)")
        click.echo(
            f"  admin key  {facts['admin_key'] or 'not here: the database has had one before'}"
        )
        click.echo(f"  API        {facts['url']}/v1/openapi.json")
        if config.test_clock:
            click.echo("  TEST CLOCK: time on this server can be moved")
    sys.stdout.flush()
