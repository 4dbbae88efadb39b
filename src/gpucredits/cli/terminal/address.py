"""Where a local server listens: a file in its data directory, for commands on the same machine.

Owns: the file's name and shape. ``announcement`` writes it when the server listens and removes it.
One left by a server that was killed names an address at which nobody answers: no other harm. A
folder may have several servers, of databases of their own: the file names the first that runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

DATA_DIR_DEFAULT: Final = Path("gpucredits-data")  # what serve makes, and where commands look
FILE: Final = "server.json"


class ServerFile(msgspec.Struct):
    """What a running server writes of itself: its address, and the process that wrote the file.

    ``pid_start`` is when the process started, in ticks since boot: with the pid it is that process.
    """

    url: str
    pid: int = 0
    pid_start: int = 0


def address_in(data_dir: Path) -> str | None:
    """The address of the server that runs on a data directory; ValueError if it is unreadable."""
    found = server_in(data_dir)
    return None if found is None else found.url


def server_in(data_dir: Path) -> ServerFile | None:
    """What the server that runs on a data directory wrote; ValueError if it is unreadable."""
    path = data_dir / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=ServerFile)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"{os.fspath(path)} cannot be read: {error}") from error
