"""The library alone: what needs more says so."""

from __future__ import annotations

import subprocess
import sys

from support.waiting import HANGS_S

WITHOUT_CLICK = """
import sys
sys.modules["click"] = None
from gpucredits import CreditTracker
from gpucredits.__main__ import main
main()
"""


def test_command_without_its_parts_names_what_to_install() -> None:
    """Without the extras the library imports, and the command says which extra it needs."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CLICK],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert done.returncode == 1
    assert "gpucredits[server]" in done.stderr
    assert "Traceback" not in done.stderr
