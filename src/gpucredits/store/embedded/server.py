"""A real PostgreSQL of our own, under our supervision, in a data directory of ours.

Owns its life: one supervisor for each data directory, readiness, restart after any kill, orderly
stop. It must not know tables or settings of sessions. The rest of the work is beside it: the files
in ``cluster``, the user in ``run_as``, the remains of a crash in ``leftovers``, the child in
``supervisor``.

The server dies with us even when we are killed (``launch`` asks the kernel for that), and whatever
a crash leaves behind is cleared at the next start.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import os
import signal
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, urlencode

import asyncpg

from gpucredits.core.duration import format_seconds
from gpucredits.store.embedded import cluster, leftovers, private, run_as
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DATABASE = "gpucredits"
START_TIMEOUT_S = 300.0  # covers recovery after a crash under full load
STOP_TIMEOUT_S = 60.0  # a fast shutdown writes one checkpoint
QUIT_TIMEOUT_S = 10.0
FIRST_STARTS_MAX = 4
PROBE_TIMEOUT_S = 5.0
POLL_S = 0.02


class EmbeddedPostgres:
    """``with EmbeddedPostgres(data_dir) as server:`` runs a server; ``server.dsn()`` reaches it.

    The calls block: in an event loop use ``await asyncio.to_thread(server.start)``. ``settings``
    are added to (and override) those of ``cluster.settings``.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        stop_timeout_s: float = STOP_TIMEOUT_S,
    ) -> None:
        self._layout = cluster.Layout(data_dir.absolute())
        self._settings = dict(settings or {})
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._run_as = run_as.RunAs()
        self._lock_handle: int | None = None
        self._supervisor: Supervisor | None = None
        self._sockets: Path | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The postmaster's process id while it runs."""
        return self._supervisor.pid if self._supervisor else None

    @property
    def restarts(self) -> int:
        """How often the server had to be started again since ``start``; for tests of restarts."""
        return max(self._supervisor.starts - 1, 0) if self._supervisor else 0

    @property
    def user(self) -> run_as.RunAs:
        """The user that the server runs as, chosen by ``start``."""
        return self._run_as

    @property
    def sockets(self) -> Path:
        """The directory of the server's socket while it runs."""
        if self._sockets is None:
            raise EmbeddedPostgresError(
                "the embedded PostgreSQL is not running: call start() first"
            )
        return self._sockets

    def dsn(self, database: str = DATABASE) -> str:
        """The address of a database of this server."""
        return address(self.sockets, database)

    def start(self) -> str:
        """Start (making the cluster the first time), wait until it serves, and give its address."""
        if self._supervisor is not None:
            raise EmbeddedPostgresError("this embedded PostgreSQL has already been started")
        layout = self._layout
        make_data_dir(layout.data_dir)
        self._run_as = run_as.choose(layout.cluster, programs=cluster.binaries() / "postgres")
        if self._run_as.is_sealed:
            private.close_to_others(layout.data_dir)
        elif self._run_as.uid != run_as.UNCHANGED:
            private.let_through(layout.data_dir)
        self._lock_handle = lock(layout)
        try:
            if layout.cluster.exists():
                leftovers.clear(layout.cluster)
            cluster.ensure(layout, run_as=self._run_as)
            cluster.rotate_log(layout)
            self._sockets = cluster.open_socket_directory(layout, run_as=self._run_as)
            self._supervisor = Supervisor(
                command=self._command,
                prepare=lambda: leftovers.clear(layout.cluster),
                environment=run_as.launch_environment(cluster.ENVIRONMENT),
                log_path=layout.log,
            )
            atexit.register(self.stop)
            self._supervisor.start()
            self._wait_until_ready(self._supervisor)
        except BaseException:
            self.stop()
            raise
        return self.dsn()

    def stop(self) -> None:
        """Fast shutdown: sessions end, a checkpoint is written. Harmless when not running."""
        atexit.unregister(self.stop)
        if self._supervisor is not None:
            fast = (signal.SIGINT, self._stop_timeout_s)
            self._supervisor.stop(steps=[fast, (signal.SIGQUIT, QUIT_TIMEOUT_S)])
            self._supervisor = None
            leftovers.clear(self._layout.cluster)
        if self._sockets is not None:
            cluster.remove_socket_directory(self._layout)
            self._sockets = None
        if self._lock_handle is not None:
            os.close(self._lock_handle)
            self._lock_handle = None

    def _command(self) -> list[str]:
        ours = cluster.settings(self._layout, sockets=self.sockets, run_as=self._run_as)
        chosen = ours | self._settings
        options = [text for name, value in chosen.items() for text in ("-c", f"{name}={value}")]
        program = cluster.binaries() / "postgres"
        return self._run_as.command(program, "-D", self._layout.cluster, *options)

    def _wait_until_ready(self, supervisor: Supervisor) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        last: Exception | None = None
        while time.monotonic() < deadline:
            if supervisor.failures_in_a_row >= FIRST_STARTS_MAX:
                why = str(supervisor.last_failure or cluster.log_tail(self._layout))
                raise EmbeddedPostgresError(
                    f"PostgreSQL ended {FIRST_STARTS_MAX} times while starting: {why}\n"
                    f"{cluster.advice(why)}".rstrip()
                )
            try:
                asyncio.run(ensure_database(self.dsn("postgres")))
            except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError) as e:
                last = e
            else:
                return
            time.sleep(POLL_S)
        waited = format_seconds(int(self._start_timeout_s))
        raise EmbeddedPostgresError(
            f"PostgreSQL did not serve within {waited} ({last}). "
            f"Its log {self._layout.log} ends:\n{cluster.log_tail(self._layout)}"
        )


def address(sockets: Path, database: str = DATABASE) -> str:
    """The address of a database whose server has its socket in a directory."""
    query = urlencode({"host": str(sockets)})
    return f"postgresql://{cluster.ROLE}@/{quote(database)}?{query}"


def make_data_dir(data_dir: Path) -> None:
    """Make the data directory, or check that the one there is ours."""
    try:
        private.make_directory(data_dir)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"cannot make the data directory {data_dir}: {error.strerror}. "
            "Choose a directory that this user may write to."
        ) from error
    if not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        raise EmbeddedPostgresError(
            f"this user may not write to the data directory {data_dir}. "
            "Choose another, or change its mode."
        )


def lock(layout: cluster.Layout) -> int:
    """Take the data directory for this process; the kernel gives it back when we end."""
    handle = private.open_file(layout.lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise EmbeddedPostgresError(
            f"{layout.data_dir} is in use by another server (process {holder}). "
            "Stop that one first, or choose another data directory."
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


async def ensure_database(dsn: str) -> None:
    """Prove that the server serves by using it, and make our database the first time."""
    connection = await asyncpg.connect(dsn, timeout=PROBE_TIMEOUT_S, command_timeout=60)
    try:
        found = await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE)
        if found is None:
            await connection.execute(f"CREATE DATABASE {DATABASE}")
    finally:
        await connection.close(timeout=PROBE_TIMEOUT_S)
