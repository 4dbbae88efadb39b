"""A server as a real process that a test kills and starts again, at the same address."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from support.waiting import HANGS_S


class MortalServer:
    """``gpucredits serve`` with its own data directory; it lives until it is killed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.data_dir = folder / "data"
        self.options = options
        self.url = self.key = ""
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGTERM)

    def start(self) -> None:
        """Start it, and return when it listens."""
        serve = [sys.executable, "-m", "gpucredits", "serve", "--json", "--port", self._port]
        self._process = subprocess.Popen(
            [*serve, "--data-dir", str(self.data_dir), *self.options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        self.url = said["url"]
        self.key = Path(said["admin_key"]).read_text().strip()
        self._port = self.url.rpartition(":")[2]

    def kill(self) -> None:
        """End it as a power cut would; return when it is gone."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.communicate(timeout=HANGS_S)
