"""What is left of a job whose warden and guardian were both killed: processes that carry its mark.

A job's processes inherit ``GPUCREDITS_GUARD``, whatever groups and sessions they make.
Owns: finding and ending them, and telling a process from another that got its number. Must not:
touch processes of other users or of other jobs, or import the client: servers use it as well.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from gpucredits.agent.guard import warden

MARK: Final = "GPUCREDITS_GUARD"
ROUNDS_MAX: Final = 100  # what is born meanwhile is found by the next round
PAUSE_S: Final = 0.01


def end_leftovers(mark: str) -> None:
    """End the processes of a job; a warden that still lives ends its own."""
    for _ in range(ROUNDS_MAX):
        found = carriers(mark)
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)


def carriers(mark: str) -> list[int]:
    """The processes with the mark in their environment, except wardens and this process."""
    marked = f"{MARK}={mark}".encode()
    script = warden.__file__.encode()
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or place.name == str(os.getpid()):
            continue
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if marked in (place / "environ").read_bytes().split(b"\0") and script not in words:
                found.append(int(place.name))
    return found


def is_running(pid: int, start: int) -> bool:
    """Whether the process that started at this tick still runs; a zombie does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19]) == start and fields[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False
