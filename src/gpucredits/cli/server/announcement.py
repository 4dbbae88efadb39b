"""The announcement of a listening server: on standard output, and in its data directory.

Owns: the words, the JSON of ``serve --json``, and the file while the server listens. The file of
another running server is left alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import click
import msgspec

from gpucredits.agent.guard.guardian import start_of
from gpucredits.agent.guard.leftovers import is_running
from gpucredits.app import Config
from gpucredits.cli.server.tls_renewal import TlsRenewal
from gpucredits.cli.terminal.address import FILE, ServerFile, server_in
from gpucredits.store.embedded.private import write_file


@contextmanager
def announced(
    config: Config, url: str, *, as_json: bool, renewal: TlsRenewal | None = None
) -> Iterator[None]:
    """Announce where the server listens, and keep the file while it does.

    The announcing process may read the data directory, so it watches the certificate as well.
    """
    watched = nullcontext() if renewal is None else renewal.watched()
    with written(config.data_dir, url) as other, watched:
        announce(config, url, as_json=as_json)
        if other is not None:
            text = f"commands in {config.data_dir} go to {other.url}, which was there before"
            click.echo(f"gpucredits: {text}: give them --url {url}", err=True)
        yield


@contextmanager
def written(data_dir: Path, url: str) -> Iterator[ServerFile | None]:
    """Keep the file in the data directory while the server listens.

    If another running server has written the file, the file stays, and is what is returned.
    """
    own = ServerFile(url, os.getpid(), start_of(os.getpid()))
    other = found(data_dir)
    if other is not None and is_running(other.pid, other.pid_start):
        yield other
        return
    path = data_dir / FILE
    write_file(path, msgspec.json.encode(own) + b"\n", mode=0o644)
    try:
        yield None
    finally:
        if found(data_dir) == own:
            path.unlink(missing_ok=True)


def found(data_dir: Path) -> ServerFile | None:
    """The content of the file, if it can be read."""
    with suppress(ValueError):
        return server_in(data_dir)
    return None


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
