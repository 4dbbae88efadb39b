"""What each job did on its devices, worked out from the meter's readings of the devices.

A whole device's reading belongs to the job that has the device. On a shared device, a job is
credited with its own processes; where the meter cannot tell processes apart, its use is unknown.
Owns: that split. Must not: read a GPU or a clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gpucredits.agent.meters.reading import DeviceReading, ProcessReading
from gpucredits.core.money import MILLI_PER_GPU
from gpucredits.core.rules.leases.idle_guard import GpuSample

ANCESTORS_MAX: Final = 64
Owns = Callable[[int], bool]


def gpus_of_job(
    shares: Mapping[str, int], readings: Mapping[str, DeviceReading], owns: Owns
) -> tuple[GpuSample, ...]:
    """What a job did on each of its devices; a device without a reading is unknown."""
    return tuple(
        sample_of(readings[uuid], milli, owns) if uuid in readings else GpuSample()
        for uuid, milli in shares.items()
    )


def sample_of(reading: DeviceReading, milli_gpus: int, owns: Owns) -> GpuSample:
    """What a job did on one device, given its thousandths of the device."""
    processes, work, held = reading.processes, reading.utilization, reading.memory_bytes
    if milli_gpus < MILLI_PER_GPU:
        if processes is None:
            return GpuSample()
        processes = tuple(each for each in processes if owns(each.pid))
        work, held = work_of(processes), held_by(processes)
    elif work is None and processes is not None:
        work = work_of(processes)
    room = (reading.memory_total_bytes or 0) * milli_gpus // MILLI_PER_GPU
    return GpuSample(
        work,
        None if held is None or not room else min(held * 100 // room, 100),
        None if processes is None else bool(processes),
    )


def work_of(processes: tuple[ProcessReading, ...]) -> int | None:
    """The total utilisation of some processes; None if one of them is unknown."""
    known = [each.utilization for each in processes if each.utilization is not None]
    return min(sum(known), 100) if len(known) == len(processes) else None


def held_by(processes: tuple[ProcessReading, ...]) -> int | None:
    """The total memory of some processes; None if one of them is unknown."""
    known = [each.memory_bytes for each in processes if each.memory_bytes is not None]
    return sum(known) if len(known) == len(processes) else None


def utilization_of(gpus: tuple[GpuSample, ...]) -> int | None:
    """The mean utilisation of a job's GPUs; None if one of them is unknown."""
    known = [each.utilization for each in gpus if each.utilization is not None]
    return round(sum(known) / len(known)) if known and len(known) == len(gpus) else None


def family_of(job_pid: int) -> Owns:
    """Whether a process belongs to a job: it descends from the job's first process or guardian."""
    roots = {job_pid, parent_of(job_pid)} - {0, 1, os.getpid()}

    def owns(pid: int) -> bool:
        for _ in range(ANCESTORS_MAX):
            if pid in roots:
                return True
            pid = parent_of(pid)
            if pid <= 1:
                return False
        return False

    return owns


def parent_of(pid: int) -> int:
    """The parent of a process; 0 where there is none."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0
