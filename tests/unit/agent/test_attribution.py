"""Whose reading it is: whole devices, shared ones, and what nobody can know."""

from __future__ import annotations

import os
import subprocess
import sys

from gpucredits.agent.attribution import family_of, gpus_of_job, utilization_of
from gpucredits.agent.meters.reading import DeviceReading, ProcessReading
from gpucredits.core.rules.leases.idle_guard import GpuSample

READINGS = {
    "a": DeviceReading(
        uuid="a",
        utilization=70,
        memory_bytes=40,
        memory_total_bytes=100,
        processes=(
            ProcessReading(pid=1, memory_bytes=10, utilization=30),
            ProcessReading(pid=2, memory_bytes=30, utilization=40),
        ),
    ),
    "b": DeviceReading(uuid="b", utilization=20, memory_bytes=5, memory_total_bytes=10),
    "c": DeviceReading(uuid="c", processes=()),
}


def owns_one(pid: int) -> bool:
    """The job of the first process."""
    return pid == 1


def test_a_whole_device_is_the_jobs_own() -> None:
    """Work and memory of the device, whosever its processes are; a container hides them."""
    gpus = gpus_of_job({"a": 1_000, "b": 1_000}, READINGS, lambda _pid: False)
    assert gpus == (GpuSample(70, 40, has_process=True), GpuSample(20, 50, has_process=None))
    assert utilization_of(gpus) == 45


def test_of_a_shared_device_a_job_has_its_own_processes() -> None:
    """Memory counts against the job's part; where processes are unknown, so is all."""
    assert gpus_of_job({"a": 250}, READINGS, owns_one) == (GpuSample(30, 40, has_process=True),)
    assert gpus_of_job({"a": 500}, READINGS, lambda _pid: False) == (
        GpuSample(0, 0, has_process=False),
    )
    unknown = gpus_of_job({"b": 500}, READINGS, owns_one)
    assert unknown == (GpuSample(),)
    assert utilization_of(unknown) is None


def test_a_device_without_a_reading_is_unknown() -> None:
    """A GPU that fell off the bus is not idle; one that shows no process is without one."""
    gpus = gpus_of_job({"z": 1_000, "c": 1_000}, READINGS, owns_one)
    assert gpus == (GpuSample(), GpuSample(0, None, has_process=False))


def test_processes_below_a_job_are_its_own() -> None:
    """The job itself does; the agent, which started it, and strangers do not."""
    code = "input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        owns = family_of(child.pid)
        assert owns(child.pid)
        assert not owns(os.getpid())
        assert not owns(1)
        child.kill()
