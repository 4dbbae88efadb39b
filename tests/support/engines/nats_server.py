"""A real NATS server of a test's own, with JetStream on file and every write synced."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.engines.postgres import temporary_directory
from support.engines.redis_server import free_port
from support.waiting import HANGS_S, until

PROGRAM = Path(sys.executable).with_name("nats-server")
SETTINGS = """
listen: "127.0.0.1:{port}"
jetstream {{ store_dir: "{folder}/jetstream", sync_interval: always }}
"""


class NatsServer:
    """One server; it can be killed and started again with what it had stored."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._folder = folder
        self._settings = folder / "nats.conf"
        self._settings.write_text(SETTINGS.format(port=self.port, folder=folder) + settings)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with (self._folder / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-c", self._settings], stdout=log, stderr=log
            )
        until(self.answers)

    def answers(self) -> bool:
        """Whether it greets who connects."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_S) as probe:
                return probe.recv(4) == b"INFO"
        except OSError:
            return False

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(HANGS_S)
        self._process = None

    def pause(self) -> None:
        """Let it live and answer nobody."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def wipe(self) -> None:
        """Take everything that it had stored, while it does not run."""
        shutil.rmtree(self._folder / "jetstream")

    def stop(self) -> None:
        """End it if it runs."""
        if self._process is not None:
            self.kill()


@contextmanager
def nats_server(settings: str = "") -> Iterator[NatsServer]:
    """A running server, gone afterwards; with more settings than the usual."""
    with temporary_directory() as folder:
        server = NatsServer(folder, settings)
        try:
            server.start()
            yield server
        finally:
            server.stop()
