"""The libnvidia-ml of ``nvml.c``, made with the C compiler against NVIDIA's own ``nvml.h``."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from support.waiting import HANGS_S

SOURCE = Path(__file__).with_name("nvml.c")
COMPILERS = ("cc", "gcc", "clang")
SONAME = "libnvidia-ml.so.1"
VARIABLE = "FAKE_NVML"


class CannotMakeNvmlError(Exception):
    """This machine cannot make the library; the text says why."""


def make_nvml(folder: Path) -> Path:
    """Compile the library into a folder."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise CannotMakeNvmlError("there is no C compiler")
    library = folder / SONAME
    words = [compiler, "-shared", "-fPIC", "-O1", f"-I{header().parent}"]
    words += [f"-Wl,-soname,{SONAME}", "-o", str(library), str(SOURCE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr
    return library


def header() -> Path:
    """NVIDIA's ``nvml.h``, of the package ``nvidia-nvml-dev``."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        for found in Path(place).glob("*/include/nvml.h"):
            return found
    raise CannotMakeNvmlError("the package nvidia-nvml-dev is not installed")
