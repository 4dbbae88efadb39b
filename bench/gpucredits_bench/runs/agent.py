"""What the agent of a node costs with many jobs: memory, and processor time at its interval.

Owns: starting a server, an agent and real jobs through the agent's socket, and the figures. Each
job has a guardian of its own, a process beside the agent: guardians are counted apart.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from gpucredits.agent.local_api import EVENTS, PACKET_BYTES_MAX, JobEvent, KillMessage, RunMessage
from gpucredits.cli.server.temporary_server import TemporaryServer, temporary_server
from gpucredits.client import Client
from gpucredits_bench.options import Progress
from gpucredits_bench.processes import PROC, children, cpu_seconds, memory_sizes, stop
from gpucredits_bench.runs.report import mark

MEMORY_MB_MAX: Final = 60.0
CORE_PERCENT_MAX: Final = 2.0
GUARDS = 2  # of each job: a guardian and its warden
ANSWER_S: Final = 600.0
AT_ONCE: Final = 16
MB: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The knobs of a run."""

    jobs: int = 500
    interval_s: float = 15.0
    seconds: float = 60.0


class AgentFigures(msgspec.Struct, kw_only=True):
    """What the agent took while all jobs ran; guardians are beside it."""

    jobs: int
    interval_s: float
    seconds: float
    memory_mb: float
    core_percent: float
    readings: int
    guardians: int
    guardian_memory_mb: float
    guardian_core_percent: float
    bars: dict[str, bool] = {}


def measure_agent(options: AgentOptions, progress: Progress) -> AgentFigures:
    """The whole run."""
    with ExitStack() as stack:
        server = stack.enter_context(temporary_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gcb-")))
        client = stack.enter_context(Client(server.url, server.key))
        client.create_account("bench")
        client.set_price("h100", "1")
        client.issue("bench", "1000000")
        agent = stack.enter_context(serving_agent(server, folder, options))
        links = [stack.enter_context(link) for link in started(folder, options.jobs, progress)]
        guardians = children(agent.pid)
        time.sleep(2 * options.interval_s)  # what starting took is over, and all have been read
        progress(f"measuring for {options.seconds:g} s")
        before = cpu_seconds(agent.pid), sum(map(cpu_seconds, guardians)), time.monotonic()
        time.sleep(options.seconds)
        spent_s = cpu_seconds(agent.pid) - before[0]
        beside_s = sum(map(cpu_seconds, guardians)) - before[1]
        lasted_s = time.monotonic() - before[2]
        guards = [pid for pid in guardians if "warden.py" in command_of(pid)]
        figures = AgentFigures(
            jobs=options.jobs,
            interval_s=options.interval_s,
            seconds=lasted_s,
            memory_mb=memory_sizes(agent.pid).get("VmRSS", 0) / MB,
            core_percent=100 * spent_s / lasted_s,
            readings=readings_of(client),
            guardians=len(guards) // GUARDS,
            guardian_memory_mb=sum(map(own_memory, guards)) * GUARDS / max(len(guards), 1) / MB,
            guardian_core_percent=100 * beside_s / lasted_s,
        )
        progress("ending the jobs")
        for link in links:
            link.send(msgspec.json.encode(KillMessage()))
        for link in links:
            heard(link, "ended")
    figures.bars = {
        "memory": figures.memory_mb < MEMORY_MB_MAX,
        "core": figures.core_percent < CORE_PERCENT_MAX,
    }
    return figures


def readings_of(client: Client) -> int:
    """How many readings the server has of a job, on the mean over a page of them."""
    leases = client.usage_page("bench", limit=100).leases
    return round(sum(each.events for each in leases) / max(len(leases), 1))


@contextmanager
def serving_agent(
    server: TemporaryServer, folder: Path, options: AgentOptions
) -> Iterator[subprocess.Popen[bytes]]:
    """An agent with a GPU for each job."""
    words = ["--state-dir", str(folder), "--node", "bench", "--meter", f"simulated:{options.jobs}"]
    words += ["--interval", f"{options.interval_s:g}s"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # our own program with our own arguments
            [sys.executable, "-m", "gpucredits", "agent", "serve", *words],
            env={**os.environ, "GPUCREDITS_URL": server.url, "GPUCREDITS_API_KEY": server.key},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + ANSWER_S
        while not (folder / "agent.sock").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield process
    finally:
        stop(process)


def started(folder: Path, jobs: int, progress: Progress) -> Iterator[socket.socket]:
    """A connection for each job, once the job runs."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    waiting: list[socket.socket] = []
    for number in range(jobs):
        waiting.append(asked(folder, number, nowhere))
        if len(waiting) == AT_ONCE or number == jobs - 1:
            for link in waiting:
                heard(link, "started")
                yield link
            waiting = []
            if not (number + 1) % (AT_ONCE * 8):
                progress(f"{number + 1} jobs run")
    os.close(nowhere)


def asked(folder: Path, number: int, nowhere: int) -> socket.socket:
    """Ask the agent for a job that sleeps."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.settimeout(ANSWER_S)
    link.connect(str(folder / "agent.sock"))
    message = RunMessage(
        account="bench",
        fields={"job_id": f"job-{number}", "gpu_type": "h100"},
        argv=["sleep", "86400"],
        env={"PATH": os.environ.get("PATH", "")},
        cwd="/",
        signal=15,
    )
    socket.send_fds(link, [msgspec.json.encode(message)], [nowhere] * 3)
    return link


def heard(link: socket.socket, event: str) -> JobEvent:
    """The next event of a job; another one than expected ends the run."""
    said = EVENTS.decode(link.recv(PACKET_BYTES_MAX))
    if said.event != event:
        raise OSError(f"a job {said.event}: {said.detail}")
    return said


def command_of(pid: int) -> str:
    """The words that a process was started with."""
    try:
        return (PROC / str(pid) / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def own_memory(pid: int) -> int:
    """The memory of a process, with its part of what it shares with others."""
    try:
        text = (PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1_024 for line in text.splitlines() if "Pss:" in line)


def agent_table(figures: AgentFigures) -> str:
    """The figures for people."""
    kept = figures.bars
    memory = mark(f"under {MEMORY_MB_MAX:g}", is_kept=kept["memory"])
    core = mark(f"under {CORE_PERCENT_MAX:g}", is_kept=kept["core"])
    times = f"one report and one reading each {figures.interval_s:g} s"
    guardian = f"{figures.guardian_memory_mb:.1f} MB each with its warden"
    beside = f"{guardian}, {figures.guardian_core_percent:.2f} % of a core in all"
    return "\n".join(
        [
            "",
            f"an agent with {figures.jobs} jobs, {times}, over {figures.seconds:.0f} s",
            "",
            f"resident memory in MB  {figures.memory_mb:8.1f}{memory}",
            f"of a core in %         {figures.core_percent:8.2f}{core}",
            f"readings of a job      {figures.readings:8d}  at the server",
            f"guardians beside it    {figures.guardians:8d}  {beside}",
        ]
    )
