"""The simulated meter: GPUs that are not there, for trying the agent and for tests.

What the GPUs do is read from a file of JSON each time, if one is given; otherwise each GPU is 90 %
busy with a process that is not there. Owns: making up readings. Must not: touch a GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from gpucredits.agent.meters.reading import Device, DeviceReading, MeterError, ProcessReading

BUSY_PERCENT: Final = 90
MEMORY_BYTES: Final = 80 << 30
GPUS_MAX: Final = 1_024


class SimulatedGpu(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one GPU is to do; ``pids`` are the processes on it, null where nobody can know."""

    utilization: int | None = BUSY_PERCENT
    memory_bytes: int | None = MEMORY_BYTES // 2
    pids: list[int] | None = None


class SimulatedMeter:
    """So many GPUs, each with a process that may be one of a job's."""

    def __init__(self, gpus: int, script: Path | None = None) -> None:
        if not 0 <= gpus <= GPUS_MAX:
            raise MeterError(f"a simulated meter has 0 to {GPUS_MAX} GPUs, not {gpus}")
        self._gpus = gpus
        self._script = script

    @property
    def name(self) -> str:
        """The meter, so that nobody mistakes it for a real one."""
        return f"simulated, {self._gpus} GPUs"

    def devices(self) -> list[Device]:
        """Made-up GPUs with names that stay."""
        return [
            Device(uuid=uuid_of(index), name="simulated GPU", memory_bytes=MEMORY_BYTES)
            for index in range(self._gpus)
        ]

    def read(self) -> list[DeviceReading]:
        """What the script says of each GPU."""
        says: dict[str, SimulatedGpu] = {}
        if self._script is not None:
            try:
                says = msgspec.json.decode(self._script.read_bytes(), type=dict[str, SimulatedGpu])
            except (OSError, msgspec.DecodeError) as error:
                raise MeterError(f"{self._script} cannot be read as readings: {error}") from error
        return [reading_of(uuid_of(index), says) for index in range(self._gpus)]

    def close(self) -> None:
        """Nothing is held."""


def uuid_of(index: int) -> str:
    """The UUID of a simulated GPU."""
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def reading_of(uuid: str, says: dict[str, SimulatedGpu]) -> DeviceReading:
    """The reading of one GPU by the script."""
    gpu = says.get(uuid, says.get("*", SimulatedGpu()))
    processes = None
    if gpu.pids is not None:
        processes = tuple(
            ProcessReading(pid=pid, memory_bytes=gpu.memory_bytes, utilization=gpu.utilization)
            for pid in gpu.pids
        )
    return DeviceReading(
        uuid=uuid,
        utilization=gpu.utilization,
        memory_bytes=gpu.memory_bytes,
        memory_total_bytes=MEMORY_BYTES,
        processes=processes,
    )
