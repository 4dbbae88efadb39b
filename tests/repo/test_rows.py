"""What is written out from the declarations of the tables is what they declare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAKE_ROWS = Path(__file__).resolve().parents[2] / "tools" / "make_rows.py"


def test_rows_and_lists_of_columns_are_as_declared() -> None:
    """Nobody edited rows.py or a list of columns in SQL, or changed a table without make rows."""
    done = subprocess.run(
        [sys.executable, str(MAKE_ROWS), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
