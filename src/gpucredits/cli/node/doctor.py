"""The checks of ``agent doctor``: each says what it found, or what is wrong and what to do.

Owns: the checks. Must not: change anything on the node or on the server.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpucredits.agent import local_api
from gpucredits.agent.guard import guardian
from gpucredits.agent.meters.choice import AUTO, open_meter, why_no_nvml
from gpucredits.agent.meters.reading import MeterError
from gpucredits.agent.spool import read_records
from gpucredits.cli.terminal.session import Session
from gpucredits.client import CallError
from gpucredits.core.duration import format_ms
from gpucredits.core.money import count
from gpucredits.wire.access.keys import KeyAnswer

SOCKET: Final = "agent.sock"
SOCKET_PATH_MAX: Final = 107  # bytes in a sockaddr_un
GUARDIAN_SOCKET: Final = "jobs/rsv_1234567890_1234567890/guardian.sock"
FILES_MIN: Final = 4_096  # a job takes its guardian's socket and its caller's
CLOCK_MS_MAX: Final = 60_000
START_S: Final = 30.0
RESERVING: Final = ("admin", "operator", "member")  # roles; a node has no table of permissions
OK: Final = "ok"
BAD: Final = "bad"
Check = tuple[str, Callable[[], str]]


def examined(
    session: Session, state_dir: Path, meter_words: str, node: str | None
) -> list[list[str]]:
    """The name, state and finding of each check."""
    rows = []
    for name, check in checks(session, state_dir, meter_words, node):
        try:
            rows.append([name, OK, check()])
        except (CallError, MeterError, OSError, ValueError) as error:
            rows.append([name, BAD, str(error)])
    return rows


def checks(
    session: Session, state_dir: Path, meter_words: str, node: str | None
) -> Iterator[Check]:
    """All checks, in the order in which to repair what they find.

    An agent that answers says what it is; ``node`` and the meter's words say it where none does.
    """
    agent = local_api.ask_status(state_dir / SOCKET)
    name = node or (agent.node if agent else host_name())
    yield "server", lambda: server(session)
    yield "node", lambda: of_node(session, name)
    yield "wall clock", lambda: wall_clock(session)
    yield "monotonic clock", monotonic_clock
    yield "processes", processes
    yield "guardian", starts_guardian
    yield "open files", open_files
    yield "state directory", lambda: writable(state_dir)
    yield "socket", lambda: socket_path(state_dir)
    yield "journal", lambda: spooled(state_dir / "journal")
    yield "readings", lambda: spooled(state_dir / "usage")
    yield "refused readings", lambda: refused(state_dir / "usage.refused")
    if agent is not None and meter_words == AUTO:
        yield "meter", lambda: read_by(agent)
    else:
        yield "meter", lambda: meter(meter_words)
    yield "agent", lambda: listens(state_dir / SOCKET, agent, name)


def host_name() -> str:
    """The name of the node if none was given."""
    return socket.gethostname().lower()


def server(session: Session) -> str:
    """Whether the server knows the key, and lets it reserve for jobs."""
    with session.client() as client:
        key = client.whoami()
    if problem := cannot_reserve(key):
        raise ValueError(problem)
    return f"key {key.key_id}, role {key.role}, scope {key.scope or 'everything'}"


def of_node(session: Session, node: str) -> str:
    """Whether the key may act for the node."""
    with session.client() as client:
        key = client.whoami()
    if problem := bound_elsewhere(key, node):
        raise ValueError(problem)
    if key.node:
        return f"{node}, and the key acts for it only"
    return f"{node}; the key is bound to no node"


def cannot_reserve(key: KeyAnswer) -> str:
    """Why an agent with this key could start no job; empty if it could."""
    if key.role in RESERVING:
        return ""
    return (
        f"key {key.key_id} is of role {key.role}, which may not reserve, so no job can be started: "
        f"gpucredits key create member --scope {key.scope or 'ORG'} --node {key.node or 'NODE'}"
    )


def bound_elsewhere(key: KeyAnswer, node: str) -> str:
    """Why a key may not act for a node; empty if it may."""
    if key.node is None or key.node == node:
        return ""
    return (
        f"this node is {node}, and the key {key.key_id} or its certificate is bound to node "
        f"{key.node}: give --node {key.node}, or a key of {node}"
    )


def wall_clock(session: Session) -> str:
    """The error of the node's wall clock, on which no lease and no bill depends."""
    with session.client() as client:
        theirs = datetime.fromisoformat(client.clock().now)
    off_ms = int((datetime.now(UTC) - theirs).total_seconds() * 1_000)
    text = f"{format_ms(abs(off_ms))} {'ahead of' if off_ms > 0 else 'behind'} the server's"
    if abs(off_ms) <= CLOCK_MS_MAX:
        return text
    return f"{text}; bills do not depend on it, logs do: start a time service"


def monotonic_clock() -> str:
    """Whether the clock for deadlines runs."""
    first = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if time.clock_gettime_ns(time.CLOCK_BOOTTIME) < first:
        raise OSError("CLOCK_BOOTTIME goes back: this kernel cannot run jobs under leases")
    return f"{format_ms(first // 1_000_000)} since boot"


def processes() -> str:
    """Whether processes can be told apart by their start."""
    tick = guardian.start_of(os.getpid())
    if not tick:
        raise OSError("/proc does not show this process: mount it without hidepid for this user")
    return f"this one started at tick {tick}"


def starts_guardian() -> str:
    """Whether a guardian can be started as the agent starts it."""
    words = [sys.executable, "-I", "-S", "-c", "import ctypes, selectors, socket, subprocess"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=START_S, check=False)  # noqa: S603  # our own Python
    if done.returncode:
        raise OSError(f"{sys.executable} cannot run it: {done.stderr.strip()[-200:]}")
    return f"runs with {sys.executable}"


def open_files() -> str:
    """Whether the agent may have enough connections open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < FILES_MIN:
        return f"{soft}, enough for {max(soft // 4, 1)} jobs; LimitNOFILE=65536 in the unit is more"
    return "no limit" if soft < 0 else str(soft)


def writable(folder: Path) -> str:
    """Whether the agent's folder is there, private and writable."""
    if not folder.is_dir():
        raise OSError(f"{folder} is not there: gpucredits agent serve makes it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(f"{folder} cannot be written: run this as the agent's user")
    if folder.stat().st_mode & 0o022:
        raise OSError(f"others may write {folder}: chmod go-w {folder}")
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    if free < 64 << 20:
        raise OSError(f"{folder} has {free >> 20} MiB free, and 64 are needed: free some space")
    return f"{folder}, {free >> 20} MiB free"


def socket_path(folder: Path) -> str:
    """Whether the paths of sockets are short enough for the kernel."""
    longest = len(os.fsencode(folder.resolve() / GUARDIAN_SOCKET))
    if longest > SOCKET_PATH_MAX:
        raise OSError(
            f"sockets below {folder.resolve()} have {longest} bytes in their path, and "
            f"{SOCKET_PATH_MAX} are allowed: choose a shorter --state-dir"
        )
    return f"{longest} of {SOCKET_PATH_MAX} bytes"


def spooled(path: Path) -> str:
    """Whether a journal can be read."""
    data = path.read_bytes() if path.exists() else b""
    records, whole = read_records(data)
    torn = f", {len(data) - whole} torn bytes are dropped" if whole < len(data) else ""
    return f"{len(records)} records{torn}"


def refused(path: Path) -> str:
    """Whether readings were set aside."""
    if path.exists():
        raise OSError(
            f"{path} has readings that the server would not take: send them to whoever runs the "
            "server, then remove the file"
        )
    return "none"


def meter(words: str) -> str:
    """Whether GPUs can be read, and which there are."""
    opened = open_meter(words)
    if opened is None:
        why = why_no_nvml() if words == AUTO else "--meter none"
        return f"no GPUs are read or given to jobs: {why}"
    try:
        devices = opened.devices()
        read = opened.read()
    finally:
        with suppress(MeterError):
            opened.close()
    if not devices:
        raise MeterError(f"{opened.name} shows no GPU: look at nvidia-smi -L")
    parts = sum(bool(each.profile) for each in devices)
    busy = [each.utilization for each in read if each.utilization is not None]
    mean = f", {round(sum(busy) / len(busy))}% busy" if busy else ""
    mig = f", {parts} of them MIG instances" if parts else ""
    return f"{opened.name}: {len(devices)} devices{mig}{mean}"


def read_by(agent: local_api.AgentStatus) -> str:
    """The devices that the running agent reads, with the agent's own meter."""
    if agent.devices is None:
        return "the agent reads no GPUs and gives none to jobs"
    return f"{agent.meter}: {agent.devices} devices, read by the agent"


def listens(path: Path, agent: local_api.AgentStatus | None, node: str) -> str:
    """Whether an agent of this node answers."""
    if not local_api.is_served(path):
        raise OSError(f"no agent listens at {path}: gpucredits agent serve")
    if agent is None:
        raise OSError(f"the agent at {path} answers only its own user and root: ask as one of them")
    if agent.node != node:
        raise OSError(f"the agent at {path} is that of node {agent.node}, not of {node}")
    return f"listens at {path} as node {agent.node}, {count(agent.jobs, 'job')}"
