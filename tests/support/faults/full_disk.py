"""A disk that is full for a while: a small file system that really is, or else one that says so.

Owns: mounting a small file system where root may do that, and filling it with ballast. Elsewhere
the library of ``disk.c`` refuses every byte by which a file would grow.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from support.faults.disk import Disk
from support.waiting import HANGS_S

MIB = 1024 * 1024
SIZE_MIB = 320


class FullDisk(Protocol):
    """Fills up and has space again."""

    name: str

    def fill(self) -> None:
        """Leave no space."""

    def free(self) -> None:
        """Give the space back."""


class Mounted:
    """A file system of its own, filled by a file."""

    name = f"a file system of {SIZE_MIB} MiB (tmpfs), filled by a file"

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Write until the kernel refuses."""
        handle = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for size in (MIB, 4096, 1):
                fill_with(handle, bytes(size))
        finally:
            os.close(handle)

    def free(self) -> None:
        """Remove the file."""
        self._ballast.unlink()


class Refusing:
    """A disk on which no file grows."""

    name = "a library that refuses growth with ENOSPC, since this user mounts no file system"

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def fill(self) -> None:
        """Leave no byte."""
        self._disk.control.space = 0

    def free(self) -> None:
        """Leave any number of bytes."""
        self._disk.heal()


def fill_with(handle: int, block: bytes) -> None:
    """Append a block until there is no space for it."""
    while True:
        try:
            os.write(handle, block)
        except OSError:
            return


@contextmanager
def mounted(folder: Path) -> Iterator[Mounted | None]:
    """Mount a small file system on a folder; None where that is not allowed."""
    options = f"size={SIZE_MIB}m,mode=0700"
    command = ["mount", "-t", "tmpfs", "-o", options, "gpucredits-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=HANGS_S, check=False)
    except OSError:  # no such program
        yield None
        return
    if done.returncode:
        yield None
        return
    try:
        yield Mounted(folder)
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True, timeout=HANGS_S, check=True)
