"""A shorter day than the one in the documentation, held to the same figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_a_short_day_is_fair(tmp_path: Path) -> None:
    """Shares keep within two points of their targets, all work gets done, and stops are few."""
    picture = tmp_path / "day.svg"
    command = [sys.executable, "bench/fairshare_day.py", "--json", "--picture", str(picture)]
    command += ["--jobs", "1200", "--orgs", "10", "--gpus", "256"]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    day = json.loads(ran.stdout)
    assert day["holds"]
    assert day["share_error_max_points"] < 2
    assert day["unfinished_jobs"] == 0
    assert day["longest_hunger_of_an_org_minutes"] <= 60
    assert day["preemptions"] <= day["jobs"] // 5
    assert day["most_preemptions_of_one_job"] <= 10
    assert picture.read_text().startswith("<svg")
