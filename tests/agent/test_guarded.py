"""Guardians and meters in one process: throttling by a command, and idle jobs that are drained."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from gpucredits.agent.devices import NodeDevices
from gpucredits.agent.guard.guardian import LOOK_MS
from gpucredits.agent.job import Place, SupervisedJob, Throttle
from gpucredits.agent.launcher import ServerAddress
from gpucredits.agent.meters.reading import DeviceReading, MeterError
from gpucredits.agent.meters.simulated import SimulatedMeter, uuid_of
from gpucredits.agent.node import JobRequest, NodeAgent
from gpucredits.agent.receipt import Receipt
from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from gpucredits.client.leases import clock_ms
from gpucredits.client.standing import Standing
from gpucredits.core.rules.leases.idle_guard import IdleTerms
from support.servers.launchers import is_alive
from support.waiting import HANGS_S

WAITS = [sys.executable, "-c", "import time; time.sleep(600)"]
QUICK = IdleTerms(window_ms=1_000, startup_ms=0, warning_ms=500, grace_ms=400)
FAR_MS = 1 << 50


async def soon(condition: Callable[[], bool]) -> None:
    """Wait until something is true; what never is would hang."""
    async with asyncio.timeout(HANGS_S):
        while not condition():  # noqa: ASYNC110  # what others do is not an event
            await asyncio.sleep(0.01)


def state_of(pid: int) -> str:
    """The state of a process, such as T for one that is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def throttled(
    throttle: Throttle | None, act: Callable[[SupervisedJob], Awaitable[None]]
) -> SupervisedJob:
    """A job that was paused, acted on, resumed and ended."""
    job = SupervisedJob(reservation_id="r", standing=Standing(ends_at_ms=clock_ms() + 600_000))
    terms = {"throttle": throttle.terms() if throttle else None}
    await job.start(WAITS, dict(os.environ), terms)
    job.order("pause")
    await soon(lambda: job.run_time.is_paused)
    await act(job)
    job.order("resume")
    await soon(lambda: not job.run_time.is_paused)
    job.order("kill")
    await soon(lambda: job.is_over)
    await job.dismiss()
    return job


def test_a_paused_job_that_somebody_lets_go_on_is_stopped_and_billed() -> None:
    """Its time counts from then on, as long as it is to be paused; nobody knows what it does."""
    seen: list[int] = []

    async def act(job: SupervisedJob) -> None:
        seen.append(job.used_ms())
        os.kill(job.run_time.pid, signal.SIGCONT)
        await soon(lambda: job.used_ms() > seen[0])
        await soon(lambda: state_of(job.run_time.pid) == "T")
        assert job.run_time.is_paused
        seen.append(job.used_ms())
        await soon(lambda: job.used_ms() > seen[1])

    job = asyncio.run(throttled(None, act))
    assert job.used_ms() > seen[1]


def test_a_paused_job_that_stands_still_is_not_billed() -> None:
    """Control: however often the guardian looks."""
    seen: list[int] = []

    async def act(job: SupervisedJob) -> None:
        seen.append(job.used_ms())
        began_ms = clock_ms()
        await soon(lambda: clock_ms() > began_ms + 3 * LOOK_MS)
        assert job.used_ms() == seen[0]

    asyncio.run(throttled(None, act))


def test_a_command_throttles_instead_of_a_signal(tmp_path: Path) -> None:
    """Both commands run with the job's pid, the job is never stopped, and its time counts."""
    note = tmp_path / "note"
    seen: list[int] = []
    commands = (f'echo pause "$GPUCREDITS_PID" >> {note}', f"echo resume >> {note}")

    async def act(job: SupervisedJob) -> None:
        await soon(note.exists)
        seen.append(job.used_ms())
        await soon(lambda: job.used_ms() > seen[0])
        assert state_of(job.run_time.pid) != "T"

    job = asyncio.run(throttled(Throttle(*commands), act))
    assert note.read_text().split()[:2] == ["pause", str(job.run_time.pid)]


def test_a_signal_throttles_unless_a_command_does(tmp_path: Path) -> None:
    """Control: without a command, and where the command fails, SIGSTOP stops job and clock."""

    async def stopped(job: SupervisedJob) -> None:
        await soon(lambda: state_of(job.run_time.pid) == "T")
        await soon(lambda: job.run_time.runs_since_ms is None)
        used = job.used_ms()
        await asyncio.sleep(0)
        assert job.used_ms() == used

    asyncio.run(throttled(None, stopped))
    asyncio.run(throttled(Throttle("exit 3", "true"), stopped))


class FailingMeter(SimulatedMeter):
    """A meter whose driver is lost."""

    def read(self) -> list[DeviceReading]:
        """Fail."""
        raise MeterError("the GPU has fallen off the bus")


class Node:
    """An agent in this process, with one GPU, and a job on it."""

    def __init__(self, server: TemporaryServer, state: Path, meter: SimulatedMeter) -> None:
        address = ServerAddress(url=server.url, key=server.key, ca_file=None, timeout_s=30)
        self.said: list[str] = []
        self.ended: list[tuple[int, Receipt | None]] = []
        devices = NodeDevices()
        devices.know(meter.devices())
        self.agent = NodeAgent(
            address, state, "n1", 0.1, self.said.append, devices=devices, meter=meter
        )

    async def start(self, org: str) -> SupervisedJob:
        """Start a job that waits."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        request = JobRequest(
            account=org,
            fields={"job_id": "idle", "gpu_type": "h100"},
            argv=WAITS,
            env=dict(os.environ),
            place=Place("/", nowhere, nowhere, nowhere),
            say=self.said.append,
            ended=lambda code, receipt: self.ended.append((code, receipt)),
        )
        job = await self.agent.start(request)
        os.close(nowhere)
        return job


def test_an_idle_job_is_warned_and_drained(
    server: TemporaryServer, client: Client, org: str, state: Path, tmp_path: Path
) -> None:
    """By the terms of its account: a warning, a signal, and a bill to the end, for that reason."""
    script = tmp_path / "gpus.json"
    script.write_text('{"*": {"utilization": 90, "pids": [1]}}')
    client.set_idle_guard(org, window_seconds=600)

    async def play() -> tuple[Node, SupervisedJob]:
        node = Node(server, state, SimulatedMeter(1, script))
        run = asyncio.create_task(node.agent.run())
        job = await node.start(org)
        metering, name = node.agent.metering, job.reservation_id
        await soon(lambda: org in metering._terms)
        assert metering._terms[org][1].window_ms == 600_000  # what was set has arrived
        metering._terms[org] = (FAR_MS, QUICK)
        metering._guarded.clear()
        await soon(lambda: name in metering._guarded)
        await soon(lambda: len(metering._guarded[name].watch.samples) > 5)
        assert not metering.warning_of(name)
        script.write_text(json.dumps({uuid_of(0): {"utilization": 0, "pids": [1]}}))
        await soon(lambda: bool(node.ended))
        run.cancel()
        await asyncio.wait({run})
        return node, job

    node, job = asyncio.run(play())
    told = [text for text in node.said if text.startswith(("warning", "the job drains"))]
    assert [text.split(":")[0] for text in told] == ["warning", "the job drains"]
    assert "below 5% for 1s on all 1 GPUs" in told[0]
    ((exit_code, receipt),) = node.ended
    assert receipt is not None
    assert (exit_code, receipt.ended_because) == (128 + signal.SIGTERM, "idle_gpus")
    assert (receipt.state, receipt.used_ms) == ("settled", job.used_ms())
    assert not is_alive(job.run_time.pid)


def test_a_meter_that_fails_ends_no_job(
    server: TemporaryServer, client: Client, org: str, state: Path
) -> None:
    """Its trouble is said once, the use is sent all the same, and nobody is idle for it."""

    async def play() -> tuple[Node, int]:
        node = Node(server, state, FailingMeter(1))
        node.agent.metering._terms[org] = (FAR_MS, QUICK)
        run = asyncio.create_task(node.agent.run())
        job = await node.start(org)
        await soon(lambda: node.agent.metering.usage.read_ms(job.reservation_id) > 2_000)
        assert not job.is_over
        job.order("kill")
        await soon(lambda: bool(node.ended) and not node.agent.metering.usage.known())
        run.cancel()
        await asyncio.wait({run})
        return node, job.used_ms()

    node, used_ms = asyncio.run(play())
    assert len([text for text in node.said if "fallen off the bus" in text]) == 1
    (usage,) = client.usage_page(org).leases
    assert (usage.measured_ms, usage.used_ms) == (used_ms, used_ms)
