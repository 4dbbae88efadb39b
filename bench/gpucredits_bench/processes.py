"""What processes cost: processor time and memory, as the kernel counts them.

Owns: reading /proc, and ending what was started, by its own id.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
STOP_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds so far, by who used them."""

    server_s: float
    postgres_s: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes: the server's, and PostgreSQL's with its shared buffers counted once."""

    server_bytes: int
    postgres_bytes: int


def children(pid: int) -> list[int]:
    """Every process below this one, at any depth."""
    parents: dict[int, list[int]] = {}
    for place in PROC.iterdir():
        if place.name.isdigit():
            fields = stat_fields(int(place.name))
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(place.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(below)
    return found


def stat_fields(pid: int) -> list[str]:
    """The fields of a process's stat after its name: state, parent and so on; none if it ended."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def cpu_seconds(pid: int) -> float:
    """Processor time of one process, and of its children that have ended."""
    fields = stat_fields(pid)
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND if fields else 0.0


def is_postgres(pid: int) -> bool:
    """Whether a process is one of PostgreSQL's, and not a server's that serves without root."""
    try:
        return (PROC / str(pid) / "comm").read_text() == "postgres\n"
    except OSError:
        return False


def processes_of(server_pid: int) -> tuple[list[int], list[int]]:
    """The processes of a server, and those of the PostgreSQL below it."""
    below = children(server_pid)
    postgres = [pid for pid in below if is_postgres(pid)]
    return [server_pid, *(pid for pid in below if pid not in postgres)], postgres


def cost_of(server_pid: int) -> Cost:
    """Processor time of a server and of the PostgreSQL below it."""
    server, postgres = processes_of(server_pid)
    return Cost(sum(map(cpu_seconds, server)), sum(map(cpu_seconds, postgres)))


def memory_of(server_pid: int) -> Memory:
    """Resident memory of a server and of the PostgreSQL below it."""
    private, shared = 0, 0
    server, postgres = processes_of(server_pid)
    for pid in postgres:
        sizes = memory_sizes(pid)
        private += sizes.get("RssAnon", 0)
        shared = max(shared, sizes.get("RssShmem", 0))
    # What a child shares with its parent since the fork counts once.
    served = max(memory_sizes(pid).get("VmRSS", 0) for pid in server)
    return Memory(served, private + shared)


def memory_sizes(pid: int) -> dict[str, int]:
    """The sizes in a process's status, in bytes."""
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return {}
    sizes = {}
    for line in lines:
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            sizes[name] = int(value.split()[0]) * 1024
    return sizes


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process that we started to end, and wait; one that will not is killed."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
