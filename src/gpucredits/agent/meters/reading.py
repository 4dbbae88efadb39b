"""What a meter tells: the devices of a node, and what each of them does now.

Owns: the shapes that every meter fills. ``None`` means that the meter cannot know.
Must not: read anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class MeterError(Exception):
    """A meter cannot read; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, or a MIG instance of one, that a job can be given.

    ``profile`` is that of a MIG instance, such as ``1g.10gb``, and empty for a whole GPU.
    """

    uuid: str
    name: str
    memory_bytes: int | None = None
    profile: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """What one process does on a device."""

    pid: int
    memory_bytes: int | None = None
    utilization: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """What a device does now; ``utilization`` is in percent, of all processes together."""

    uuid: str
    utilization: int | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None
    processes: tuple[ProcessReading, ...] | None = None


class Meter(Protocol):
    """Reads the GPUs of a node. Calls may block, and come from one thread at a time."""

    @property
    def name(self) -> str:
        """The meter as people name it, with the version of its source."""
        ...

    def devices(self) -> list[Device]:
        """The devices that jobs can be given."""
        ...

    def read(self) -> list[DeviceReading]:
        """What each device does now."""
        ...

    def close(self) -> None:
        """Let the source go."""
        ...
