"""Where a run lives: a directory that is gone afterwards, and how fast its disk is."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpucredits_bench.traffic.load import quantile

SYNCS = 200


@contextmanager
def workplace(parent: Path | None) -> Iterator[Path]:
    """A directory for databases and logs that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="gpucredits-bench-", dir=parent))
    folder.chmod(0o711)  # the database's user passes through
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def time_syncs(folder: Path) -> float:
    """Microseconds that a durable write of one page takes: what every commit waits for."""
    path = folder / "sync"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    taken = []
    try:
        for _ in range(SYNCS):
            os.pwrite(handle, os.urandom(8_192), 0)
            started = time.perf_counter()
            os.fdatasync(handle)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(handle)
        path.unlink()
    return quantile(sorted(taken), 0.5) * 1e6
