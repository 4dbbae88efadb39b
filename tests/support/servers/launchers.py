"""``gpucredits run`` as a real process, with the job's words on a pipe."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from gpucredits.cli.server.temporary_server import TemporaryServer
from support.servers.mortal_server import MortalServer
from support.waiting import HANGS_S


class Launched:
    """A launcher that runs, and what it and its job have said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self._out = process.stdout

    def line(self) -> str:
        """The next line of the job."""
        return self._out.readline().strip()

    def said(self) -> str:
        """The next line that the launcher says to people."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().strip()

    def signal(self, number: int) -> None:
        """Signal the launcher alone."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, dict[str, Any], str]:
        """The exit code, the receipt ({} if there is none), and all that was said to people."""
        _, said = self.process.communicate(timeout=HANGS_S)
        receipts = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return self.process.returncode, receipts[0] if receipts else {}, said


class Launchers:
    """Starts launchers, and ends those that are left."""

    def __init__(self, server: TemporaryServer | MortalServer) -> None:
        self.env = {
            **os.environ,
            "GPUCREDITS_URL": server.url,
            "GPUCREDITS_API_KEY": server.key,
            "PYTHONUNBUFFERED": "1",
        }
        self._launched: list[Launched] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._launched:
            if each.process.poll() is None:
                each.process.kill()
            each.process.communicate(timeout=HANGS_S)

    def start(self, account: str, *words: str, command: list[str], **env: str) -> Launched:
        """Start a launcher for a command."""
        run = [sys.executable, "-m", "gpucredits", "run", "--account", account, "--type", "h100"]
        process = subprocess.Popen(
            [*run, "--json", *words, "--", *command],
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._launched.append(Launched(process))
        return self._launched[-1]

    def agent(self, folder: Path, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start an agent that keeps its state in a folder, and wait until it listens."""
        serve = [sys.executable, "-m", "gpucredits", "agent", "serve", "--state-dir", str(folder)]
        process = subprocess.Popen(
            [*serve, *words],
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._launched.append(Launched(process))
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "jobs are started through" in line, line + process.stderr.read()
        return process

    def python(self, account: str, *words: str, script: str, **env: str) -> Launched:
        """Start a launcher for a Python script."""
        return self.start(account, *words, command=[sys.executable, "-c", script], **env)


def parent_of(pid: int) -> int:
    """The parent of a process."""
    found = re.search(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def end(pid: int) -> None:
    """Kill one process that a test knows."""
    os.kill(pid, signal.SIGKILL)
