"""Make the virtual environment that every make target runs in.

Needs only a Python with the standard library: no root and no package beyond what the system has.
Packages come from whatever index the machine's pip is set up for, checked against the hashes in
``requirements.lock``. Any number of bootstraps may run at once: one makes the environment, the
others wait for it and use it.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK_FILE = ROOT / "requirements.lock"
OLDEST = (3, 11)
STEPS = 3
LIBRARY_PATH = "LD_LIBRARY_PATH"
TERMINAL_TICK_S = 1.0
LINE_TICK_S = 10.0


def main(folder: Path) -> None:
    """Make ``folder`` with everything in the lock file and this project, unless it is ready."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        raise SystemExit(f"gpucredits needs Python 3.11 or newer; `python3` here is {found}.")
    with locked(folder):
        if is_ready(folder):
            say(f"{folder} is ready: another make has just made it.")
            return
        began_s = time.monotonic()
        make(folder)
        (folder / ".ready").touch()
        say(f"{folder} is ready after {time.monotonic() - began_s:.0f} s.")


def make(folder: Path) -> None:
    """Create the environment afresh and install into it, saying what is being done."""
    with step(1, f"making {folder}"):
        shutil.rmtree(folder, ignore_errors=True)
        install = installer(folder)
        remember_libraries(folder)
    packages = LOCK_FILE.read_text(encoding="utf-8").count("==")
    with step(2, f"installing {packages} packages at the versions of requirements.lock"):
        run(*install, "--require-hashes", "-r", str(LOCK_FILE))
    with step(3, "installing gpucredits and its benchmarks, from these sources"):
        run(*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT))


def is_ready(folder: Path) -> bool:
    """Whether the environment is whole, and no older than what it is made from."""
    ready = folder / ".ready"
    made_from = (LOCK_FILE, Path(__file__))
    return ready.exists() and all(
        ready.stat().st_mtime >= source.stat().st_mtime for source in made_from
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only bootstrap of this folder; the kernel gives the lock back when we end."""
    path = folder.with_name(f"{folder.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SystemExit(
            f"Cannot make {folder}: {error.strerror} ({error.filename}).\n"
            "Name a folder that this user may write to, for example: "
            "make demo VENV=/tmp/gpucredits-venv"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            with alive(f"waiting: process {holder} is making {folder}"):
                fcntl.flock(handle, fcntl.LOCK_EX)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def installer(folder: Path) -> list[str]:
    """Make the environment with the first means at hand, and the command that installs into it."""
    python = str(folder / "bin" / "python")
    if importlib.util.find_spec("ensurepip"):
        venv.create(folder, with_pip=True, symlinks=True)
        return [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    venv.create(folder, with_pip=False, symlinks=True)
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", python]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    raise SystemExit(
        "This Python has neither ensurepip nor pip, so nothing can be installed.\n"
        "On Debian and Ubuntu: apt-get install python3-venv (or have `uv` on the PATH)."
    )


def remember_libraries(folder: Path) -> None:
    """Note the library path for make, where this Python starts only with LD_LIBRARY_PATH set."""
    path, python = os.environ.get(LIBRARY_PATH), folder / "bin" / "python"
    if not path or answer_of(python) == answer_of(python, without=LIBRARY_PATH):
        return
    (folder / "environment.mk").write_text(f"export {LIBRARY_PATH} := {path}\n", encoding="utf-8")
    say(
        f"\nThis Python works only with {LIBRARY_PATH}={path}.\n"
        f"make sets it by itself from now on; to run {folder}/bin/gpucredits by hand, export it."
    )


def answer_of(python: Path, *, without: str = "") -> tuple[int, bytes]:
    """How a Python starts when a variable is not set; it may start with another's library."""
    environment = {name: value for name, value in os.environ.items() if name != without}
    command = [str(python), "-I", "-c", "import ctypes, ssl, sys; print(sys.version)"]
    done = subprocess.run(  # noqa: S603  # our own Python
        command, env=environment, capture_output=True, check=False
    )
    return done.returncode, done.stdout


@contextlib.contextmanager
def step(number: int, what: str) -> Iterator[None]:
    """Say which step is begun, for how long it has run while it does, and when it is done."""
    with alive(f"[{number}/{STEPS}] {what}"):
        yield


@contextlib.contextmanager
def alive(what: str) -> Iterator[None]:
    """Show for how long something has run: a line that is rewritten, or one now and then."""
    is_terminal = sys.stderr.isatty()
    began_s = time.monotonic()
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TERMINAL_TICK_S if is_terminal else LINE_TICK_S):
            elapsed = f"{what} ... {time.monotonic() - began_s:.0f} s"
            say(f"\r{elapsed}" if is_terminal else elapsed, end="" if is_terminal else "\n")

    say(f"{what} ...", end="" if is_terminal else "\n")
    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if is_terminal:
            say(f"\r{what} ... {time.monotonic() - began_s:.0f} s")


def say(text: str, *, end: str = "\n") -> None:
    """Write for people, at once."""
    sys.stderr.write(text + end)
    sys.stderr.flush()


def run(*command: str) -> None:
    """Run a command, and stop with its exit code if it fails."""
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603
    if code:
        say(f"\nThis failed with code {code}: {' '.join(command)}")
        raise SystemExit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
