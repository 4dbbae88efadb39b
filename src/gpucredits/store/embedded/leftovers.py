"""What a crash leaves on a data directory: processes, a pid file, sockets. Found and cleared.

PostgreSQL trusts the number in ``postmaster.pid``: a dead server that nobody has reaped yet, or a
stranger that was given the same number, keeps it from starting. We look at the processes instead:
a server process has the ``postgres`` program and works in the data directory. Only those are ever
signalled, and through a descriptor, so that a reused number cannot be hit.

The caller holds the lock of the data directory. Must not start anything.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from gpucredits.store.embedded.run_as import EmbeddedPostgresError

# PostgreSQL's own patience with its children on immediate shutdown is five seconds.
QUIT_WAIT_S = 6.0
KILL_WAIT_S = 10.0
POLL_S = 0.02


def clear(cluster: Path) -> list[int]:
    """Stop every server process left on the cluster and forget its pid file; say who was there.

    A living server is stopped, not adopted: only a parent is told when its child dies.
    """
    found = server_processes(cluster)
    for action, wait_s in ((signal.SIGQUIT, QUIT_WAIT_S), (signal.SIGKILL, KILL_WAIT_S)):
        if end(cluster, action=action, wait_s=wait_s):
            break
    else:
        raise EmbeddedPostgresError(
            f"processes {server_processes(cluster)} still use {cluster} and do not end when "
            "killed (a hung disk?). PostgreSQL cannot start until they are gone."
        )
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    return found


def end(cluster: Path, *, action: signal.Signals, wait_s: float) -> bool:
    """Signal all server processes of the cluster and wait; whether none is left."""
    deadline = time.monotonic() + wait_s
    signalled: set[int] = set()
    while pids := server_processes(cluster):
        if time.monotonic() >= deadline:
            return False
        for pid in pids:
            if pid not in signalled:
                send(pid, cluster, action=action)
                signalled.add(pid)
        time.sleep(POLL_S)
    return True


def send(pid: int, cluster: Path, *, action: signal.Signals) -> None:
    """Signal one process, unless it ended or its number was reused since it was found."""
    with suppress(ProcessLookupError), ExitStack() as stack:
        handle = os.pidfd_open(pid)
        stack.callback(os.close, handle)
        if is_server_process(pid, cluster):
            signal.pidfd_send_signal(handle, action)


def server_processes(cluster: Path) -> list[int]:
    """The living PostgreSQL processes that work in this cluster directory."""
    pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]
    return [pid for pid in pids if is_server_process(pid, cluster)]


def is_server_process(pid: int, cluster: Path) -> bool:
    """Whether a process runs ``postgres`` in the directory; the dead and the foreign do not."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
        return program.removesuffix(" (deleted)") == "postgres" and (
            Path(f"/proc/{pid}/cwd").samefile(cluster)
        )
    except OSError:  # ended meanwhile, a zombie, or not ours to look at
        return False
