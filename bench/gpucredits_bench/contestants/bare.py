"""A textbook's server in a process of its own: its database, starting it, and ending it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gpucredits_bench.contestants.bare_server import BareSpec, Kind
from gpucredits_bench.contestants.server import Server, running
from gpucredits_bench.traffic.exchange import ExchangeError, Target

CONNECTIONS = 16  # to the database: more of them are slower on a small machine, and fewer too


class Listening(msgspec.Struct):
    """What a bare server says when it listens."""

    port: int


@contextmanager
def bare_serving(folder: Path, kind: Kind, database_url: str) -> Iterator[Server]:
    """Run a textbook, or a call that writes the same rows, behind HTTP."""
    token = secrets.token_hex(16)
    spec = BareSpec(kind=kind, database_url=database_url, token=token, connections=CONNECTIONS)
    with running(folder / f"{kind}.json", "contestants.bare_server", spec) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise ExchangeError(f"the textbook's server ({kind}) did not start")
        port = msgspec.json.decode(line, type=Listening).port
        yield Server(Target(port, token), process.pid, database_url, folder)
