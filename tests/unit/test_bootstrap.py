"""Making the environment: one at a time, seen to be alive, and plain about what is wrong."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from support.waiting import HANGS_S, until

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "bootstrap.py"
# A bootstrap that installs nothing: it says that it has begun, and ends when it is told to.
HELD = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("bootstrap", sys.argv[1])
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)

def make(folder):
    folder.mkdir(exist_ok=True)
    with (folder / "made").open("a") as made:
        made.write("once ")
    print("making", flush=True)
    sys.stdin.readline()

bootstrap.make = make
bootstrap.main(pathlib.Path(sys.argv[2]))
"""


@pytest.fixture
def bootstrap() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("bootstrap", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def held(folder: Path, said: Path) -> Iterator[subprocess.Popen[str]]:
    """A bootstrap of ``folder`` in a process of its own, which writes what it says to a file."""
    with (
        said.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", HELD, str(PROGRAM), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def begins(process: subprocess.Popen[str]) -> bool:
    """Whether a bootstrap comes to making the environment."""
    assert process.stdout is not None
    return process.stdout.readline() == "making\n"


def test_of_two_at_once_one_makes_and_the_other_waits(tmp_path: Path) -> None:
    """The second says whom it waits for, destroys nothing, and uses what the first has made."""
    folder, first_said, second_said = (tmp_path / name for name in ("venv", "first", "second"))
    with held(folder, first_said) as first:
        assert begins(first)
        with held(folder, second_said) as second:
            until(lambda: f"process {first.pid} is making" in second_said.read_text())
            assert second.poll() is None
            first.communicate("go on\n", timeout=HANGS_S)
            assert second.wait(HANGS_S) == 0
    assert "another make has just made it" in second_said.read_text()
    assert (folder / "made").read_text() == "once "


def test_a_killed_bootstrap_is_begun_again(tmp_path: Path) -> None:
    """The lock ends with its holder, and a half-made environment is not taken for a whole one."""
    folder, said = tmp_path / "venv", tmp_path / "said"
    for _ in range(2):
        with held(folder, said) as process:
            assert begins(process)
    assert not (folder / ".ready").exists()


def test_an_environment_older_than_its_lock_file_is_made_again(tmp_path: Path) -> None:
    """What is ready and no older than the lock file stays; what is older does not."""
    folder, said = tmp_path / "venv", tmp_path / "said"
    with held(folder, said) as process:
        process.communicate("go on\n", timeout=HANGS_S)
    with held(folder, said) as process:
        process.communicate(timeout=HANGS_S)
    assert (folder / "made").read_text() == "once "
    os.utime(folder / ".ready", (0, 0))
    with held(folder, said) as process:
        assert begins(process)


def test_a_folder_that_cannot_be_made_is_said_with_what_to_do(
    bootstrap: ModuleType, tmp_path: Path
) -> None:
    """The message names the folder, the reason and the way out."""
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"(?s)Cannot make .*file.venv: .*VENV=/tmp"):
        bootstrap.main(tmp_path / "file" / "venv")


def test_a_long_step_shows_that_it_is_alive(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being done is said at once, and for how long while it lasts."""
    said: list[str] = []
    monkeypatch.setattr(bootstrap, "LINE_TICK_S", 0.01)
    monkeypatch.setattr(bootstrap, "TERMINAL_TICK_S", 0.01)
    monkeypatch.setattr(bootstrap, "say", lambda text, **_: said.append(text))
    with bootstrap.step(2, "installing 60 packages"):
        assert said[0] == "[2/3] installing 60 packages ..."
        until(lambda: len(said) > 3)
    assert said[2].endswith(" s")


def test_a_failed_command_is_named(
    bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is the command's, and the command is shown."""
    with pytest.raises(SystemExit) as ended:
        bootstrap.run(sys.executable, "-c", "raise SystemExit(7)")
    assert ended.value.code == 7
    assert "failed with code 7" in capsys.readouterr().err


@pytest.mark.parametrize("needs_it", [True, False])
def test_a_python_that_needs_a_library_path_is_told_to_make(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, needs_it: bool
) -> None:
    """The path is for make where Python is another one without it, and only there."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        "#!/bin/sh\necho ${LD_LIBRARY_PATH:-another}\n" if needs_it else "#!/bin/sh\n"
    )
    python.chmod(0o755)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/python/lib")
    bootstrap.remember_libraries(tmp_path)
    note = tmp_path / "environment.mk"
    assert note.exists() is needs_it
    if needs_it:
        assert note.read_text() == "export LD_LIBRARY_PATH := /opt/python/lib\n"
