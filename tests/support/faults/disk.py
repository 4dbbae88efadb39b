"""The disk of ``disk.c`` as a test sees it: made with the C compiler, filled, broken and counted.

Owns: the library, the journal's file and the memory that the test shares with every process of
PostgreSQL. Must not: read the journal (``photograph`` does).
"""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from gpucredits.store.embedded.cluster import binaries
from support.engines.postgres import temporary_directory
from support.waiting import HANGS_S

SOURCE = Path(__file__).with_name("disk.c")
COMPILERS = ("cc", "gcc", "clang")
UNBOUNDED = -1
# AIO by workers or io_uring would do some of the work where the library does not see it.
SETTINGS = {"io_method": "sync"}


class Fault(IntEnum):
    """Which calls fail with an I/O error; the order is that of ``disk.c``."""

    WAL_SYNC = 0
    DATA_SYNC = 1
    WAL_WRITE = 2
    DATA_WRITE = 3
    DATA_READ = 4


class Control(ctypes.Structure):
    """The shared memory; the layout is that of ``disk.c``."""

    _fields_ = (
        ("space", ctypes.c_int64),
        ("loaded", ctypes.c_int64),
        ("full", ctypes.c_int64),
        ("lies", ctypes.c_int64),
        ("left", ctypes.c_int64 * len(Fault)),
        ("failed", ctypes.c_int64 * len(Fault)),
    )


class CannotMakeDiskError(Exception):
    """This machine cannot run the library; the text says why."""


class Disk:
    """The library and what it shares with the test. A new one has space and works."""

    def __init__(self, folder: Path, *, is_journaled: bool) -> None:
        self.library = folder / "disk.so"
        self.journal = folder / "journal" if is_journaled else None
        self._control_path = folder / "control"
        self._control_path.write_bytes(bytes(ctypes.sizeof(Control)))
        for path in filter(None, (self._control_path, self.journal)):
            path.touch()
            path.chmod(0o666)  # PostgreSQL of root runs as another user
        with self._control_path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), ctypes.sizeof(Control))
        self.control = Control.from_buffer(self._memory)
        self.heal()
        make_library(self.library)
        self._require_loaded(folder)

    def environment(self, root: Path) -> dict[str, str]:
        """What PostgreSQL is started with, for files below a directory."""
        told = {
            "LD_PRELOAD": str(self.library),
            "DISK_ROOT": str(root.resolve()),
            "DISK_CONTROL": str(self._control_path),
        }
        return told | ({"DISK_JOURNAL": str(self.journal)} if self.journal else {})

    def _require_loaded(self, root: Path) -> None:
        """Raise if the dynamic linker does not take the library into PostgreSQL."""
        command = [str(binaries() / "postgres"), "--version"]
        environment = self.environment(root)
        subprocess.run(command, env=environment, capture_output=True, timeout=HANGS_S, check=False)
        if not self.control.loaded:
            raise CannotMakeDiskError("PostgreSQL cannot be started with a library (LD_PRELOAD)")

    def fail(self, fault: Fault, times: int) -> None:
        """Let the next calls of a kind fail."""
        self.control.left[fault] = times

    def lie(self) -> None:
        """Let writes to tables fail alone, and answer them as if they were done."""
        self.control.lies = 1

    def heal(self) -> None:
        """Let nothing fail from here on, and give space without bound."""
        self.control.space = UNBOUNDED
        self.control.lies = 0
        for fault in Fault:
            self.control.left[fault] = 0

    def failed(self, fault: Fault) -> int:
        """How many calls of a kind have failed so far."""
        return int(self.control.failed[fault])


@contextmanager
def disk(*, is_journaled: bool = False) -> Iterator[Disk]:
    """A disk in a folder of its own, which the user of the database can enter."""
    with temporary_directory(on_disk=True) as folder:
        folder.chmod(0o711)
        yield Disk(folder, is_journaled=is_journaled)


def make_library(path: Path) -> None:
    """Compile ``disk.c``, or say why that cannot be."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) < 8:
        raise CannotMakeDiskError("the library that watches the disk is for 64-bit Linux")
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise CannotMakeDiskError(f"there is no C compiler ({', '.join(COMPILERS)})")
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(path), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    if done.returncode:
        raise CannotMakeDiskError(f"{Path(compiler).name} failed: {done.stderr[-500:]}")
    path.chmod(0o755)
