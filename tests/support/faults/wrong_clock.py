"""The clock of ``clock.c`` as a test sees it: made with the C compiler, set by the environment."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from support.waiting import HANGS_S

SOURCE = Path(__file__).with_name("clock.c")
COMPILERS = ("cc", "gcc", "clang")


class CannotMakeClockError(Exception):
    """This machine cannot make the library; the text says why."""


def wrong_clock(folder: Path, *, shift_s: int, drift_ppm: int) -> dict[str, str]:
    """The environment of a process whose clocks are wrong."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise CannotMakeClockError("there is no C compiler")
    library = folder / "clock.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr
    return {
        "LD_PRELOAD": str(library),
        "CLOCK_SHIFT_S": str(shift_s),
        "CLOCK_DRIFT_PPM": str(drift_ppm),
        "CLOCK_BASE_S": str(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**9),
    }
