"""The meter that asks NVIDIA's driver through NVML (package ``nvidia-ml-py``).

Owns: calls of NVML, and what their failures mean to people.
Must not: be imported where ``pynvml`` may be missing; ``choice`` imports it on demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pynvml

from gpucredits.agent.meters.reading import Device, DeviceReading, MeterError, ProcessReading

PERCENT_MAX: Final = 100
_PROFILE = re.compile(r"MIG\s+(\S+)")
_NOT_THERE: Final = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
)
# An empty answer: pynvml raises the success of a call that found nothing.
_NOTHING_NEW: Final = (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND)
_WHAT_TO_DO: Final = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        "there is no libnvidia-ml.so.1 here: install the NVIDIA driver, or use --meter none"
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "the NVIDIA driver is not loaded: run modprobe nvidia and look at dmesg"
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "the driver's library and its kernel module differ in version: reboot, or reload nvidia"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        "this user may not ask the driver: give it access to /dev/nvidia*"
    ),
    pynvml.NVML_ERROR_GPU_IS_LOST: (
        "a GPU has fallen off the bus: look at dmesg for its Xid, and reset or replace it"
    ),
}


@contextmanager
def told() -> Iterator[None]:
    """Turn an error of NVML into a MeterError that says what to do."""
    try:
        yield
    except pynvml.NVMLError as error:
        advice = _WHAT_TO_DO.get(error.value, "run nvidia-smi to see what the driver says")
        raise MeterError(f"NVML: {error}: {advice}") from error


class NvmlMeter:
    """Reads the GPUs and MIG instances of this node."""

    def __init__(self) -> None:
        with told():
            pynvml.nvmlInit()
            self._version = str(pynvml.nvmlSystemGetDriverVersion())
            self._handles = dict(self._find())
        self._seen: dict[str, int] = {}  # when the last sample of each device was taken

    @property
    def name(self) -> str:
        """NVML with the version of the driver."""
        return f"NVML, driver {self._version}"

    def devices(self) -> list[Device]:
        """Whole GPUs, and the MIG instances of GPUs in MIG mode."""
        with told():
            return [device for device, _ in self._handles.values()]

    def read(self) -> list[DeviceReading]:
        """Utilisation, memory and processes of each device."""
        with told():
            return [self._read(device, handle) for device, handle in self._handles.values()]

    def close(self) -> None:
        """Shut NVML down."""
        with told():
            pynvml.nvmlShutdown()

    def _find(self) -> Iterator[tuple[str, tuple[Device, Any]]]:
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            whole = described(handle)
            if not is_cut_up(handle):
                yield whole.uuid, (whole, handle)
                continue
            for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
                part = asked(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
                if part is not None:
                    instance = described(part, parent=whole.uuid)
                    yield instance.uuid, (instance, part)

    def _read(self, device: Device, handle: Any) -> DeviceReading:
        rates = None if device.parent else asked(pynvml.nvmlDeviceGetUtilizationRates, handle)
        memory = asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
        return DeviceReading(
            uuid=device.uuid,
            utilization=None if rates is None else min(int(rates.gpu), PERCENT_MAX),
            memory_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            processes=self._processes(device, handle),
        )

    def _processes(self, device: Device, handle: Any) -> tuple[ProcessReading, ...] | None:
        running = asked(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
        if running is None:
            return None
        shares = {} if device.parent else self._shares(device.uuid, handle)
        return tuple(
            ProcessReading(
                pid=int(each.pid),
                memory_bytes=None if each.usedGpuMemory is None else int(each.usedGpuMemory),
                utilization=None if shares is None or device.parent else shares.get(each.pid, 0),
            )
            for each in running
        )

    def _shares(self, uuid: str, handle: Any) -> dict[int, int] | None:
        """The mean utilisation of each process since the last reading; None if unknown."""
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(handle, self._seen.get(uuid, 0))
        except pynvml.NVMLError as error:
            if error.value in _NOTHING_NEW:
                return {}
            if error.value in _NOT_THERE:
                return None
            raise
        by_pid: dict[int, list[int]] = {}
        for sample in samples:
            if sample.pid:
                by_pid.setdefault(int(sample.pid), []).append(min(int(sample.smUtil), PERCENT_MAX))
                self._seen[uuid] = max(self._seen.get(uuid, 0), int(sample.timeStamp))
        return {pid: round(sum(each) / len(each)) for pid, each in by_pid.items()}


def described(handle: Any, parent: str = "") -> Device:
    """The device's name, type, memory and profile, which never change."""
    name = str(pynvml.nvmlDeviceGetName(handle))
    memory = asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
    profile = _PROFILE.search(name)
    return Device(
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        name=name,
        memory_bytes=None if memory is None else int(memory.total),
        profile=profile[1].lower() if profile and parent else "",
        parent=parent,
    )


def is_cut_up(handle: Any) -> bool:
    """Whether a GPU is in MIG mode, so that only its instances can be used."""
    mode = asked(pynvml.nvmlDeviceGetMigMode, handle)
    return mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE


def asked(function: Any, *arguments: Any) -> Any:
    """NVML's answer; None if this device, driver or user cannot get one."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if error.value in _NOT_THERE:
            return None
        raise
