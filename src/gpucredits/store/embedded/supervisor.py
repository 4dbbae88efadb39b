"""Keep one child process running until told to stop.

Owns a thread that starts the child, waits for it and starts it again with growing delays. The
thread lives as long as the supervision does, which matters: the kernel's parent-death signal fires
when the *thread* that made the child ends. It must not know what the child is.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from gpucredits.store.embedded import private

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

log = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 10.0
STEADY_S = 2.0  # a child that lived this long was not failing to start: begin again quickly
KILL_WAIT_S = 10.0


def open_log(path: Path) -> IO[bytes]:
    """The child's log, to be appended to: a file of ours and no link."""
    return os.fdopen(private.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")


class Supervisor:
    """Runs ``command()`` for ever; ``prepare`` runs before each start and may raise."""

    def __init__(
        self,
        *,
        command: Callable[[], Sequence[str]],
        prepare: Callable[[], object],
        environment: Mapping[str, str],
        log_path: Path,
    ) -> None:
        self._command = command
        self._prepare = prepare
        self._environment = environment
        self._log_path = log_path
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="postgres-supervisor", daemon=True)
        self._pid: int | None = None
        self._handle: int | None = None
        self.starts = 0
        self.failures_in_a_row = 0
        self.last_failure: Exception | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._pid

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self, *, steps: Sequence[tuple[signal.Signals, float]]) -> None:
        """End the child with each signal in turn, waiting the seconds beside it, and return."""
        with self._lock:
            self._stopping.set()
        for action, wait_s in (*steps, (signal.SIGKILL, KILL_WAIT_S)):
            with self._lock:
                if self._handle is not None:
                    with suppress(ProcessLookupError):
                        signal.pidfd_send_signal(self._handle, action)
            self._thread.join(wait_s)
            if not self._thread.is_alive():
                return
        raise TimeoutError(f"process {self._pid} did not end when killed (a hung disk?)")

    def _run(self) -> None:
        delay_s = BACKOFF_FIRST_S
        while not self._stopping.is_set():
            began_s = time.monotonic()
            ending = self._run_once()
            if self._stopping.is_set():
                return
            if time.monotonic() - began_s >= STEADY_S:
                delay_s = BACKOFF_FIRST_S
                self.failures_in_a_row = 0
            self.failures_in_a_row += 1
            log.warning("the database server %s; starting it again in %.1f s", ending, delay_s)
            self._stopping.wait(delay_s)
            delay_s = min(delay_s * 2, BACKOFF_MAX_S)

    def _run_once(self) -> str:
        """Start the child and wait for its end; how it ended, in words."""
        try:
            self._prepare()
            with open_log(self._log_path) as output, self._lock:
                if self._stopping.is_set():
                    return "was not started"
                process = self._spawn(output)
                self._pid = process.pid
                self.starts += 1
        except Exception as error:  # noqa: BLE001 - tried again; a caller reads last_failure
            self.last_failure = error
            return f"could not be started: {error}"
        code = process.wait()
        with self._lock:
            self._pid = None
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
        return f"ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def _spawn(self, output: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the child with a descriptor to signal it by, or not at all."""
        process = subprocess.Popen(  # noqa: S603 - our caller's own command
            self._command(),
            cwd="/",
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Its own session: Ctrl-C in a terminal is for us, and we stop it in order.
            start_new_session=True,
        )
        try:
            self._handle = os.pidfd_open(process.pid)
        except OSError:  # out of descriptors
            process.kill()
            process.wait()
            raise
        return process
