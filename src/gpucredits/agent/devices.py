"""Which GPUs of the node each job has: whole ones, parts of one, and MIG instances.

Owns: giving devices to jobs and taking them back. Two jobs share a device only in parts, and all
parts of a device together are at most the whole.
Must not: read a GPU (meters do), or take a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpucredits.agent.meters.reading import Device
from gpucredits.core.money import MILLI_PER_GPU

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
Shares = Mapping[str, int]  # by device: thousandths of it


class NoDevicesError(Exception):
    """The node cannot give a job its GPUs; the text says how many are free."""


@dataclass(slots=True)
class NodeDevices:
    """The devices of a node and who has them; a node without known devices gives none.

    ``gpu_type`` is the type of the node's whole GPUs. Empty means any type.
    """

    devices: dict[str, Device] = field(default_factory=dict)
    gpu_type: str = ""
    given: dict[str, Shares] = field(default_factory=dict)
    is_known: bool = False  # whether a meter has told the devices, be they none

    def know(self, devices: Iterable[Device]) -> None:
        """Learn which devices the node has; from now on, jobs get only these."""
        self.devices = {each.uuid: each for each in devices}
        self.is_known = True

    def free(self, uuid: str) -> int:
        """How many thousandths of a device are free."""
        return MILLI_PER_GPU - sum(shares.get(uuid, 0) for shares in self.given.values())

    def give(
        self, holder: str, milli_gpus: int, gpu_type: str, wanted: Sequence[str] = ()
    ) -> Shares:
        """Give a job the devices that it names, or any that fit; NoDevicesError if none do."""
        self.require_possible(milli_gpus, gpu_type, wanted)
        if not self.is_known:
            return {}
        fitting = self._allowed(gpu_type, wanted)
        shares = chosen({uuid: self.free(uuid) for uuid in fitting}, milli_gpus)
        if shares is None:
            free = sum(self.free(uuid) for uuid in fitting)
            whole = sum(self.free(uuid) == MILLI_PER_GPU for uuid in fitting)
            raise NoDevicesError(
                f"the node has {len(fitting)} {gpu_type} devices, {whole} of them wholly free and "
                f"{gpus_text(free)} free in all; the job needs {gpus_text(milli_gpus)}. Start it "
                "when a job has ended, or on another node."
            )
        self.given[holder] = shares
        return shares

    def hold(self, holder: str, shares: Shares) -> None:
        """Record the devices of a job that runs already."""
        if shares:
            self.given[holder] = dict(shares)

    def rename(self, holder: str, name: str) -> None:
        """Pass the devices that were kept for a request on to its lease."""
        if holder in self.given:
            self.given[name] = self.given.pop(holder)

    def take_back(self, holder: str) -> None:
        """Free the devices of a job that has ended."""
        self.given.pop(holder, None)

    def could_give(self, milli_gpus: int, gpu_type: str, wanted: Sequence[str] = ()) -> bool:
        """Whether the devices that a job needs are free now."""
        free = {uuid: self.free(uuid) for uuid in self._allowed(gpu_type, wanted)}
        return not self.is_known or chosen(free, milli_gpus) is not None

    def require_possible(self, milli_gpus: int, gpu_type: str, wanted: Sequence[str] = ()) -> None:
        """Raise NoDevicesError if not even an idle node could run the job."""
        if not self.is_known:
            if self.gpu_type not in ("", gpu_type):
                raise NoDevicesError(
                    f"the node is for {self.gpu_type}, and nothing reads its devices: a job for "
                    f"{gpu_type} can never start here. Start it on another node."
                )
            return
        fitting = self._fitting(gpu_type)
        unknown = [each for each in wanted if each not in fitting]
        if unknown:
            raise NoDevicesError(
                f"the node has no device {', '.join(unknown)} for {gpu_type}: it has "
                f"{', '.join(fitting) or 'none of that type'}"
            )
        allowed = self._allowed(gpu_type, wanted)
        if chosen(dict.fromkeys(allowed, MILLI_PER_GPU), milli_gpus) is None:
            which = f"the job names {len(allowed)} of its" if wanted else f"it has {len(fitting)}"
            raise NoDevicesError(
                f"the job needs {gpus_text(milli_gpus)} of the node, and {which} {gpu_type} "
                "devices: the job can never start here. Ask for less, or use another node."
            )

    def _allowed(self, gpu_type: str, wanted: Sequence[str]) -> list[str]:
        """The devices of a type that a job may have: the ones it names, or else all of them."""
        return [each for each in self._fitting(gpu_type) if not wanted or each in wanted]

    def _fitting(self, gpu_type: str) -> list[str]:
        """The devices of a type: MIG instances by the profile in its name, or whole GPUs."""
        parts = [
            uuid
            for uuid, device in self.devices.items()
            if device.profile and device.profile in gpu_type
        ]
        if parts or (self.gpu_type and gpu_type != self.gpu_type):
            return parts
        return [uuid for uuid, device in self.devices.items() if not device.profile]


def chosen(free: Mapping[str, int], milli_gpus: int) -> Shares | None:
    """Whole devices for whole GPUs, and for a part the fullest device that has room for it."""
    count, part = divmod(milli_gpus, MILLI_PER_GPU)
    whole = [uuid for uuid, left in free.items() if left == MILLI_PER_GPU]
    if len(whole) < count:
        return None
    shares = dict.fromkeys(whole[:count], MILLI_PER_GPU)
    if part:
        roomy = [uuid for uuid, left in free.items() if left >= part and uuid not in shares]
        if not roomy:
            return None
        shares[min(roomy, key=lambda uuid: free[uuid])] = part
    return shares


def visible(shares: Shares) -> dict[str, str]:
    """The environment that limits a job to its devices; empty if the node's devices are unknown."""
    return {VISIBLE: ",".join(shares)} if shares else {}


def gpus_text(milli_gpus: int) -> str:
    """A number of GPUs, for messages to people."""
    return f"{milli_gpus / MILLI_PER_GPU:g} GPUs"
