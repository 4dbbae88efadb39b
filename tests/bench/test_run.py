"""Tiny runs of the whole: every part works, nothing is left behind."""

from __future__ import annotations

from math import inf
from pathlib import Path
from statistics import median

import msgspec
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits_bench.contestants.inprocess import InProcess
from gpucredits_bench.runs import fleet
from gpucredits_bench.runs.figures import Figures
from gpucredits_bench.runs.fleet import FleetFigures, fleet_bars, fleet_table

SMALL = ["--reservations", "200", "--orgs", "20", "--nodes", "4", "--beats-per-post", "20"]
SHORT = ["--seconds", "0.6"]  # a window keeps both cores busy, however long it is
TWO_WINDOWS = ["--windows", "2"]


def run(folder: Path, *options: str) -> str:
    """What a run prints; it must end well."""
    arguments = ["bench", "heartbeats", *SMALL, *SHORT, "--data-dir", str(folder), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_whole_run_measures_all_three_and_verifies(data_dir: Path) -> None:
    """Textbook, ours through HTTP and COPY give figures, the books verify, the place is clean."""
    figures = msgspec.json.decode(run(data_dir, "--json", *TWO_WINDOWS), type=Figures)
    assert figures.verified
    assert figures.textbook_per_second == median(figures.windows["statements"]) > 0
    assert figures.call_per_second == median(figures.windows["calls"]) > 0
    assert figures.ours.small_per_second == median(figures.windows["ours, 8 beats a report"]) > 0
    assert {len(rates) for rates in figures.windows.values()} == {2}
    assert all(max(rates) > 0 for rates in figures.windows.values())
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


def test_a_fleet_is_timed_without_and_with_gates(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports of 8 leave by the clock; reports and reserves are timed on both sides."""
    monkeypatch.setattr(fleet, "INTERVAL_S", 2.0)  # so that each window has several reports
    figures = msgspec.json.decode(run(data_dir, "--fleet", "--json"), type=FleetFigures)
    assert figures.verified
    assert figures.beats_per_second == 200 / 2
    for side in (figures.plain, figures.gated):
        assert len(side) == 2
        assert all(each.reserve_p95_ms >= each.reserve_p50_ms > 0 for each in side)
    assert "with all gates, reports" in fleet_table(figures)
    for side in (figures.plain, figures.gated):
        for each in side:
            each.report_p95_ms = 0.0
    assert figures.report_ratio == inf
    assert not fleet_bars(figures)["report_ratio"]
    assert list(data_dir.iterdir()) == []
