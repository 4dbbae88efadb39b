"""The server under test: ``gpucredits serve`` in a process of its own, and windows of load on it.

Owns: starting and stopping it, running the load generator against it, and reading beside the
window what the window cost: processor time, log bytes, memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import asyncpg
import msgspec

from gpucredits.store.embedded.cluster import ROLE, Layout
from gpucredits.store.embedded.server import DATABASE
from gpucredits_bench import processes
from gpucredits_bench.traffic.exchange import ExchangeError, Target
from gpucredits_bench.traffic.load import COUNTED, COUNTING, Figures, Spec
from gpucredits_bench.workload import WINDOW_S

LOG_TAIL_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: how to speak to it, its process, and its database."""

    target: Target
    pid: int
    database_url: str
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The figures of one window of load, and what they cost."""

    figures: Figures
    server_cpu_s: float
    postgres_cpu_s: float
    wal_bytes: int
    memory: processes.Memory
    began_us: int
    ended_us: int


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """Run the server on a data directory in this folder, and end it."""
    data_dir = folder / "data"
    log_path = folder / "server.log"
    command = [sys.executable, "-m", "gpucredits", "serve", "--json", "--port", "0"]
    command += ["--window-max-seconds", str(WINDOW_S)]
    with log_path.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603  # our own program
            [*command, "--data-dir", str(data_dir), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        facts = announced(process, log_path)
        port = urlsplit(facts["url"]).port or 0
        token = Path(facts["admin_key"]).read_text().strip()
        yield Server(Target(port, token), process.pid, database_url(data_dir), folder)
    finally:
        processes.stop(process)


def announced(process: subprocess.Popen[bytes], log_path: Path) -> dict[str, str]:
    """What the server says when it listens."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        said = log_path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        raise ExchangeError(f"the server did not start: {said}")
    facts: dict[str, str] = msgspec.json.decode(line)
    if "url" not in facts:
        raise ExchangeError(f"the server did not start: {facts.get('detail', '')}")
    return facts


def database_url(data_dir: Path, name: str = DATABASE) -> str:
    """The address of a database of the PostgreSQL that a data directory's server runs."""
    layout = Layout(data_dir.absolute())
    sockets = layout.data_dir / "run"
    if layout.socket_note.exists():
        sockets = Path(layout.socket_note.read_text().strip())
    return f"postgresql://{ROLE}@/{name}?{urlencode({'host': str(sockets)})}"


async def run_alone(url: str, text: str) -> None:
    """Run one statement that must stand alone."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(text)
    finally:
        await connection.close()


async def wal_position(url: str) -> int:
    """How many bytes of log the database has written in its life."""
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))
    finally:
        await connection.close()


def run_load(
    server: Server,
    spec: Spec,
    wal: Callable[[], int],
    cost: Callable[[], processes.Cost] | None = None,
) -> Window:
    """Run the generator, and read the costs when its window begins and when it ends."""
    cost = cost or partial(processes.cost_of, server.pid)
    with generating(server, spec) as process:
        expect(process, COUNTING)
        began_us = time.time_ns() // 1_000
        before, wal_before = cost(), wal()
        expect(process, COUNTED)
        ended_us = time.time_ns() // 1_000
        after, wal_after = cost(), wal()
        memory = processes.memory_of(server.pid)
        figures = figures_of(process)
    if figures.problems:
        raise ExchangeError("; ".join(figures.problems))
    return Window(
        figures=figures,
        server_cpu_s=after.server_s - before.server_s,
        postgres_cpu_s=after.postgres_s - before.postgres_s,
        wal_bytes=wal_after - wal_before,
        memory=memory,
        began_us=began_us,
        ended_us=ended_us,
    )


@contextmanager
def generating(
    server: Server, spec: msgspec.Struct, program: str = "load", name: str = "load"
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a load generator in a process of its own, and end it."""
    with running(server.folder / f"{name}.json", f"traffic.{program}", spec) as process:
        yield process


@contextmanager
def running(path: Path, program: str, spec: msgspec.Struct) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of this package, which reads what to do from a file, and end it."""
    path.write_bytes(msgspec.json.encode(spec))
    path.chmod(0o600)
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", f"gpucredits_bench.{program}", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # the program that we are of
    )
    try:
        yield process
    finally:
        processes.stop(process)
        path.unlink(missing_ok=True)


def expect(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Wait for a line of the generator."""
    assert process.stdout is not None
    said = process.stdout.readline()
    if said != line:
        raise ExchangeError(f"the load generator ended early: {said.decode(errors='replace')}")


def figures_of(process: subprocess.Popen[bytes]) -> Figures:
    """The generator's last line."""
    return msgspec.json.decode(last_line(process), type=Figures)


def last_line(process: subprocess.Popen[bytes]) -> bytes:
    """What a generator says at its end."""
    assert process.stdout is not None
    return process.stdout.readline()
