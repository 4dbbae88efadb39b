"""Tiny runs of the whole: every part works, nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import msgspec
from click.testing import CliRunner

from gpucredits.bench.figures import Figures, InProcess
from gpucredits.cli.main import main

SMALL = ["--reservations", "200", "--orgs", "20", "--seconds", "1", "--nodes", "4"]


def run(folder: Path, *options: str) -> str:
    """What a run prints; it must end well."""
    arguments = ["bench", "heartbeats", *SMALL, "--data-dir", str(folder), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_whole_run_measures_all_three_and_verifies(data_dir: Path) -> None:
    """Textbook, ours through HTTP and COPY give figures, the books verify, the place is clean."""
    figures = msgspec.json.decode(run(data_dir, "--json"), type=Figures)
    assert figures.verified
    assert figures.textbook_per_second == max(figures.textbook_by_connections.values()) > 0
    assert figures.ours_per_second > 0
    assert figures.copy_per_second > 0
    assert figures.ratio_to_textbook == figures.ours_per_second / figures.textbook_per_second
    assert figures.ours.beats_checked > 0
    assert figures.ours.wal_bytes_per_heartbeat > 0
    assert figures.ours.reserve_idle_p95_ms >= figures.ours.reserve_idle_p50_ms > 0
    assert figures.ours.small_report_p95_ms >= figures.ours.small_report_p50_ms > 0
    assert figures.ours.admissions_per_second > 0
    assert figures.ours.server_memory_bytes > 0
    assert list(data_dir.iterdir()) == []


def test_people_are_shown_a_table(data_dir: Path) -> None:
    """Ours without HTTP prints its figures for people, and the same as JSON."""
    assert "heartbeats per second" in run(data_dir, "--in-process")
    alone = msgspec.json.decode(run(data_dir, "--in-process", "--json"), type=InProcess)
    assert alone.in_process_per_second > 0
    assert list(data_dir.iterdir()) == []
