"""The simulated meter: made-up GPUs, for trials of the agent and for tests.

A JSON file, read each time, gives the load of the GPUs. Without a file, each GPU is 90 % busy with
a process that does not exist. Owns: making up readings. Must not: touch a GPU.
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
    """The load of one GPU; ``pids`` are its processes, null if the meter cannot tell them."""

    utilization: int | None = BUSY_PERCENT
    memory_bytes: int | None = MEMORY_BYTES // 2
    pids: list[int] | None = None


class SimulatedMeter:
    """A number of GPUs, each with processes that may belong to a job."""

    def __init__(self, gpus: int, script: Path | None = None) -> None:
        if not 0 <= gpus <= GPUS_MAX:
            raise MeterError(f"a simulated meter has 0 to {GPUS_MAX} GPUs, not {gpus}")
        self._gpus = gpus
        self._script = script

    @property
    def name(self) -> str:
        """The meter's name, which says that it is simulated."""
        return f"simulated, {self._gpus} GPUs"

    def devices(self) -> list[Device]:
        """The made-up GPUs; their names never change."""
        return [
            Device(uuid=uuid_of(index), name="simulated GPU", memory_bytes=MEMORY_BYTES)
            for index in range(self._gpus)
        ]

    def read(self) -> list[DeviceReading]:
        """Each GPU's reading, from the file or made up."""
        says: dict[str, SimulatedGpu] = {}
        if self._script is not None:
            try:
                says = msgspec.json.decode(self._script.read_bytes(), type=dict[str, SimulatedGpu])
            except (OSError, msgspec.DecodeError) as error:
                raise MeterError(f"{self._script} does not hold readings: {error}") from error
        return [reading_of(uuid_of(index), says) for index in range(self._gpus)]

    def close(self) -> None:
        """Nothing is held."""


def uuid_of(index: int) -> str:
    """The UUID of a simulated GPU."""
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def reading_of(uuid: str, says: dict[str, SimulatedGpu]) -> DeviceReading:
    """One GPU's reading, from the file or made up."""
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
