"""The demo runs, tells the truth, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpucredits.cli.server.demo import own_command
from support.waiting import until

TIMEOUT_S = 120.0


@contextmanager
def demo(folder: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    """Run the demo with its temporary files below a folder, as an argument of a command if any."""
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "gpucredits", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def listening(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Wait until the demo says where its server listens."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("It listens on "):
            address = urlsplit(line.removeprefix("It listens on ").partition(";")[0])
            return address.hostname or "", address.port or 0
    raise AssertionError("the demo ended before its server listened")


def is_gone(address: tuple[str, int]) -> bool:
    """Whether nobody listens there."""
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError:
        return True
    return False


def test_the_demo_plays_to_its_end(data_dir: Path) -> None:
    """A job is drained and stopped at its last credit, a refusal explained, the books checked."""
    with demo(data_dir) as process:
        text, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, text
    for words in (
        "train-llm is told to drain (insufficient_credits)",
        "train-llm is stopped where its credits end: 40 charged",
        "globex/nlp/bob has 0 credits available, and 12 are needed",
        "Receipts:",
        "all hold",
        "What to try next",
    ):
        assert words in text
    assert "\x1b" not in text
    assert list(data_dir.iterdir()) == []


def test_what_to_try_next_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's name where the shell finds it, else its path, the shorter one from here."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    python = folder / "python"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_command(python, tmp_path) == ".venv/bin/python -m gpucredits"
    script = folder / "gpucredits"
    script.touch(mode=0o755)
    assert own_command(python, tmp_path) == ".venv/bin/gpucredits"
    assert own_command(python, tmp_path / "elsewhere") == str(script)
    other = tmp_path / "gpucredits"
    other.touch(mode=0o755)
    assert own_command(python, tmp_path) == ".venv/bin/gpucredits"
    monkeypatch.setenv("PATH", str(folder))
    assert own_command(python, tmp_path) == "gpucredits"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_an_interrupted_demo_cleans_up(number: signal.Signals, data_dir: Path) -> None:
    """Interrupted half-way, it stops its server and removes its files."""
    with demo(data_dir) as process:
        address = listening(process)
        process.send_signal(number)
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode != 0
    assert is_gone(address)
    assert list(data_dir.iterdir()) == []


@pytest.mark.parametrize("before", [(), ("sh", "-c", "trap '' QUIT && exec \"$@\"", "sh")])
def test_a_killed_demo_leaves_no_server(data_dir: Path, before: tuple[str, ...]) -> None:
    """Its server ends with it, even when nobody could tell it to and signals are ignored."""
    with demo(data_dir, *before) as process:
        address = listening(process)
        process.kill()
        process.wait()
    until(lambda: is_gone(address))
    until(lambda: not list(data_dir.rglob("postmaster.pid")))
