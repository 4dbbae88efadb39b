"""Make the virtual environment that every make target runs in.

Needs only a Python with the standard library: no root and no package beyond what the system has.
Packages come from whatever index the machine's pip is set up for, checked against the hashes in
``requirements.lock``.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)


def main(folder: Path) -> None:
    """Create ``folder`` afresh, install the lock file and this project, and mark it ready."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        raise SystemExit(f"gpucredits needs Python 3.11 or newer; `python3` here is {found}.")
    shutil.rmtree(folder, ignore_errors=True)
    install = installer(folder)
    run(*install, "--require-hashes", "-r", str(ROOT / "requirements.lock"))
    run(*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    (folder / ".ready").touch()


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


def run(*command: str) -> None:
    """Run a command, and stop with its exit code if it fails."""
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
