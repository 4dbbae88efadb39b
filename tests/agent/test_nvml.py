"""The NVML meter over the real ``pynvml``, against a library that tells what a file says."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucredits.agent.meters.choice import open_meter, why_no_nvml
from gpucredits.agent.meters.reading import DeviceReading, Meter, MeterError, ProcessReading
from support.servers.nvml import VARIABLE, CannotMakeNvmlError, make_nvml
from support.waiting import HANGS_S

GIB = 1 << 30
WHOLE = f"gpu GPU-a 73 {6 * GIB} {80 * GIB} 0 NVIDIA H100 80GB HBM3\n"
CUT_UP = (
    f"gpu GPU-b 0 0 {80 * GIB} 1 NVIDIA H100 80GB HBM3\n"
    f"mig MIG-1 {GIB} {10 * GIB} NVIDIA H100 80GB HBM3 MIG 1g.10gb\n"
    f"proc 44 {GIB} 99 7\n"
    f"mig MIG-2 0 {10 * GIB} NVIDIA H100 80GB HBM3 MIG 1g.10gb\n"
)
Tell = Callable[[str], None]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library; a machine without a compiler skips these tests."""
    try:
        made = make_nvml(tmp_path_factory.mktemp("nvml"))
    except CannotMakeNvmlError as error:
        pytest.skip(str(error))
    ctypes.CDLL(str(made))  # loaded by its soname before pynvml asks for that name
    return made


@pytest.fixture
def tell(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Says what the driver is to tell."""
    script = tmp_path / "gpus"
    monkeypatch.setenv(VARIABLE, str(script))
    return lambda text: (script.write_text(text), None)[1]


@pytest.fixture
def meter(tell: Tell) -> Iterator[Meter]:
    """A meter of one whole GPU with two processes, and one GPU in two parts."""
    tell(WHOLE + f"proc 42 {GIB} 30 5\nproc 42 {GIB} 50 6\nproc 43 {GIB} 9 0\n" + CUT_UP)
    opened = open_meter("nvml")
    assert opened is not None
    yield opened
    opened.close()


def test_devices_are_gpus_and_instances(meter: Meter) -> None:
    """A GPU in MIG mode is its instances, each with its profile; names and memory are told."""
    assert [(each.uuid, each.profile, each.parent) for each in meter.devices()] == [
        ("GPU-a", "", ""),
        ("MIG-1", "1g.10gb", "GPU-b"),
        ("MIG-2", "1g.10gb", "GPU-b"),
    ]
    assert meter.devices()[0].memory_bytes == 80 * GIB
    assert meter.name == "NVML, driver 570.86.10"


def test_a_reading_has_utilisation_memory_and_processes(meter: Meter) -> None:
    """Samples of a process are averaged; of MIG nobody knows more than memory and processes."""
    whole, first, second = meter.read()
    assert (whole.utilization, whole.memory_bytes) == (73, 6 * GIB)
    assert whole.processes is not None
    assert {each.pid: each.utilization for each in whole.processes} == {42: 40, 43: 0}
    assert first == DeviceReading(
        uuid="MIG-1",
        memory_bytes=GIB,
        memory_total_bytes=10 * GIB,
        processes=(ProcessReading(pid=44, memory_bytes=GIB),),
    )
    assert second.processes == ()


def test_samples_count_once(meter: Meter, tell: Tell) -> None:
    """A process without a sample since the last look did nothing; a new sample counts."""

    def shares() -> dict[int, int | None]:
        processes = meter.read()[0].processes
        assert processes is not None
        return {each.pid: each.utilization for each in processes}

    assert shares()[42] == 40
    assert shares()[42] == 0
    tell(WHOLE + f"proc 42 {GIB} 88 9\n" + CUT_UP)
    assert shares() == {42: 88}


@pytest.mark.parametrize(
    ("code", "advice"), [(9, "modprobe nvidia"), (18, "reboot"), (4, "/dev/nvidia"), (999, "smi")]
)
def test_a_driver_that_fails_says_what_to_do(tell: Tell, code: int, advice: str) -> None:
    """The error of NVML comes with the next step; ``auto`` does without a meter."""
    tell(f"fail {code}\n")
    with pytest.raises(MeterError, match=advice):
        open_meter("nvml")
    assert advice in why_no_nvml()
    assert open_meter("auto") is None


def test_a_driver_that_fails_later_is_told(meter: Meter, tell: Tell) -> None:
    """A GPU that is lost while the agent runs is an error of the reading, with advice."""
    tell("fail 15\n")
    with pytest.raises(MeterError, match="Xid"):
        meter.read()


def test_without_a_driver_the_message_says_so() -> None:
    """In a process of its own, where no library was loaded."""
    code = (
        "from gpucredits.agent.meters.choice import open_meter, why_no_nvml\n"
        "assert open_meter('auto') is None\nprint(why_no_nvml())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    assert "install the NVIDIA driver" in done.stdout or "pip install" in done.stdout
