"""The warden: the parent of a guardian, which sees that no job is ever left without one.

It runs as a script, and its child becomes the guardian. A guardian that was stopped goes on. When a
guardian dies, the warden ends every process that it leaves, in any group or session: the kernel
gives orphans to the next subreaper above them, which is the warden.

Owns: one guardian. Must not: know orders, deadlines or bills, or import more than Python's library.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36
DEAF_TO: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


def look_after(guardian: int) -> None:
    """Return when the guardian has ended; continue a guardian that somebody stopped."""
    while os.WIFSTOPPED(os.waitpid(guardian, os.WUNTRACED)[1]):
        os.kill(guardian, signal.SIGCONT)


def end_children() -> None:
    """End all processes below this one; the kernel makes orphans below it its children."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children():
                with contextlib.suppress(OSError):
                    group = os.getpgid(pid)
                    if group != os.getpgrp():  # all of it at once, however fast it forks
                        os.killpg(group, signal.SIGKILL)
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def children() -> list[int]:
    """The pids of this process's children."""
    own = str(os.getpid()).encode()
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                if (place / "stat").read_bytes().rpartition(b")")[2].split()[1] == own:
                    found.append(int(place.name))
    return found


def let_go(link: int) -> None:
    """Close every stream that the job or its launcher could wait for."""
    os.close(link)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def main() -> None:
    """Fork: the child becomes the guardian."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    guardian = os.fork()
    if not guardian:
        runpy.run_path(str(Path(__file__).with_name("guardian.py")), run_name="__main__")
        return
    for number in DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    let_go(int(sys.argv[1]))
    look_after(guardian)
    end_children()


if __name__ == "__main__":
    main()
