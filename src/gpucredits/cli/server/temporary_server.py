"""A server for the length of a command: its own data directory, a free port, a movable clock.

Owns: starting the server as a user would, and leaving neither a process nor a file behind.
Must not: talk to the server; the command does, through the client.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import msgspec

from gpucredits.store.embedded import launch

START_TIMEOUT_S: Final = 180.0  # a machine that is busy with other things starts it all the same
STOP_TIMEOUT_S: Final = 20.0
LOG_LINES_SHOWN: Final = 5


class ServerFailedError(Exception):
    """The server did not start; the text has its last output."""


class Announcement(msgspec.Struct):
    """The announcement of ``serve --json``."""

    url: str
    admin_key: str


class Failure(msgspec.Struct):
    """The error of ``serve --json`` if it cannot listen."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryServer:
    """A running server."""

    url: str
    key: str
    data_dir: Path


@contextmanager
def temporary_server(*options: str) -> Iterator[TemporaryServer]:
    """Start a server in a temporary directory; stop it and remove the directory afterwards.

    ``options`` are those of ``gpucredits serve``.
    """
    folder = Path(tempfile.mkdtemp(prefix="gpucredits-"))
    try:
        with (folder / "serve.log").open("wb") as log:
            process = _start(folder / "data", log, options)
        try:
            said = _announcement(process, folder / "serve.log")
            key = Path(said.admin_key).read_text().strip()
            yield TemporaryServer(url=said.url, key=key, data_dir=folder / "data")
        finally:
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(data_dir: Path, log: IO[bytes], options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    # The launcher ties the server's life to ours, so that it ends even when we are killed.
    tied = [sys.executable, launch.__file__, str(os.getpid()), "-1", "-1", "-1"]
    serve = [sys.executable, "-m", "gpucredits", "serve", "--json", "--test-clock", "--port", "0"]
    return subprocess.Popen(  # noqa: S603  # our own program with our own arguments
        [*tied, *serve, "--data-dir", str(data_dir), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
    )


def _announcement(process: subprocess.Popen[bytes], log: Path) -> Announcement:
    line = _first_line(process, time.monotonic() + START_TIMEOUT_S)
    try:
        return msgspec.json.decode(line, type=Announcement)
    except msgspec.DecodeError:
        said = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        with suppress(msgspec.DecodeError):
            said.append(msgspec.json.decode(line, type=Failure).detail)
        raise ServerFailedError("the server did not start: " + "\n".join(said)) from None


def _first_line(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    if process.stdout is None:
        return b""
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return b""
            part = os.read(process.stdout.fileno(), 4_096)
            if not part:
                return b""
            line += part
    return line


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
