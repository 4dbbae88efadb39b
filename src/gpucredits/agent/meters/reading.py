"""What a meter reads: the devices of a node, and the present load of each.

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

    ``profile`` is the profile of a MIG instance, such as ``1g.10gb``; empty for a whole GPU.
    """

    uuid: str
    name: str
    memory_bytes: int | None = None
    profile: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """The load of one process on a device."""

    pid: int
    memory_bytes: int | None = None
    utilization: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """The present load of a device; ``utilization`` is in percent, for all processes together."""

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
        """The present load of each device."""
        ...

    def close(self) -> None:
        """Close the source."""
        ...
