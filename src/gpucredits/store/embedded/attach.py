"""Reaching the embedded PostgreSQL of a data directory, whoever runs it.

Owns: finding out whether another process runs it, and where it listens then.
Must not: start or stop anything.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from urllib.parse import quote, urlencode

from gpucredits.store.embedded import cluster


def address_in_use(data_dir: Path, database: str) -> str | None:
    """The address of a database that another process serves from a data directory, or None."""
    layout = cluster.Layout(data_dir.absolute())
    if not is_locked(layout):
        return None
    places = [layout.data_dir / "run"]
    if layout.socket_note.exists():
        places.append(Path(layout.socket_note.read_text(encoding="utf-8").strip()))
    for folder in places:
        if (folder / cluster.SOCKET_NAME).exists():
            query = urlencode({"host": str(folder)})
            return f"postgresql://{cluster.ROLE}@/{quote(database)}?{query}"
    return None


def is_locked(layout: cluster.Layout) -> bool:
    """Whether a process holds a data directory; the kernel frees it when that process ends."""
    try:
        handle = os.open(layout.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
