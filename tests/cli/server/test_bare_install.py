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

WITHOUT_BENCHMARKS = """
import sys
sys.modules.pop("gpucredits_bench", None)
sys.path[:] = [place for place in sys.path if not place.endswith("bench")]
from gpucredits.__main__ import main
sys.argv = ["gpucredits", "bench", "heartbeats"]
main()
"""


def test_command_without_its_parts_names_what_to_install() -> None:
    """Without the extras the library imports, and the command says which extra it needs."""
    done = run(WITHOUT_CLICK)
    assert done.returncode == 1
    assert "gpucredits[server]" in done.stderr
    assert "Traceback" not in done.stderr


def test_bench_without_the_benchmarks_says_where_they_are() -> None:
    """An installed server has no benchmarks, and says how to get them."""
    done = run(WITHOUT_BENCHMARKS)
    assert done.returncode == 1
    assert "bench needs the benchmarks (gpucredits_bench is missing)" in done.stderr
    assert "in a checkout of the sources" in done.stderr
    assert "Traceback" not in done.stderr


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
