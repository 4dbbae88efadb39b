"""The meter of a node: ``auto``, ``nvml``, ``dcgm[:URL]``, ``simulated:N[:FILE]`` or ``none``.

Owns: the words for meters. ``auto`` is NVML where there is a driver, and otherwise no meter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpucredits.agent.meters.dcgm import URL_DEFAULT, DcgmMeter
from gpucredits.agent.meters.reading import Meter, MeterError
from gpucredits.agent.meters.simulated import SimulatedMeter

AUTO: Final = "auto"
WORDS: Final = "auto, nvml, dcgm, dcgm:URL, simulated:N, simulated:N:FILE or none"


def open_meter(words: str) -> Meter | None:
    """The meter by its name; None for ``none``. MeterError says what is wrong and what to do."""
    kind, _, rest = words.partition(":")
    match kind:
        case "none":
            return None
        case "auto":
            return None if why_no_nvml() else open_nvml()
        case "nvml":
            return open_nvml()
        case "dcgm":
            return DcgmMeter(rest or URL_DEFAULT)
        case "simulated":
            count, _, script = rest.partition(":")
            if not count.isdecimal():
                raise MeterError("a simulated meter needs its number of GPUs: simulated:4")
            return SimulatedMeter(int(count), Path(script) if script else None)
        case _:
            raise MeterError(f"there is no meter {words!r}: write {WORDS}")


def open_nvml() -> Meter:
    """The meter of NVIDIA's driver; its package is imported here only."""
    try:
        from gpucredits.agent.meters.nvml import NvmlMeter  # noqa: PLC0415  # it may be missing
    except ModuleNotFoundError as error:
        raise MeterError("nvidia-ml-py is not installed: pip install 'gpucredits[nvml]'") from error
    return NvmlMeter()


def why_no_nvml() -> str:
    """Why ``auto`` chooses no meter; empty if NVML answers."""
    try:
        open_nvml().close()
    except MeterError as error:
        return str(error)
    return ""
