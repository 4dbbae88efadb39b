"""The note that a running server leaves in its data directory, so that commands find it.

Owns: where data lives by default, and the file's shape. Must not hold secrets: the key is a file
of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

DATA_DIR_DEFAULT: Final = Path("gpucredits-data")
SERVER_FILE: Final = "server.json"


class ServerFile(msgspec.Struct, kw_only=True):
    """What a running server writes of itself."""

    url: str
    pid: int = 0


@contextmanager
def announced(data_dir: Path, url: str) -> Iterator[None]:
    """Leave the note while a server runs; one that was killed is overwritten by the next."""
    path = data_dir / SERVER_FILE
    draft = path.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(ServerFile(url=url, pid=os.getpid())) + b"\n")
    draft.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def read(data_dir: Path) -> ServerFile | None:
    """The note in a data directory, if there is one; DecodeError or OSError if it is damaged."""
    try:
        return msgspec.json.decode((data_dir / SERVER_FILE).read_bytes(), type=ServerFile)
    except FileNotFoundError:
        return None
