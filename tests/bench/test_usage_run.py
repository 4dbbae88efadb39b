"""A tiny run of measured use: every contestant takes every event once."""

from __future__ import annotations

from pathlib import Path

import msgspec
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits_bench.runs.usage_figures import UsageFigures, usage_table


def test_a_whole_run_counts_every_event_once(data_dir: Path) -> None:
    """Ours with and without a bus and a bare JetStream give figures, and the place is clean."""
    small = ["--reservations", "20", "--orgs", "3", "--events", "200", "--events-per-post", "10"]
    arguments = ["bench", "usage", *small, "--data-dir", str(data_dir), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    figures = msgspec.json.decode(result.stdout, type=UsageFigures)
    assert figures.verified
    assert figures.events == 200
    for intake in (figures.direct, figures.bus, figures.bare):
        assert min(intake.accepted_per_second, intake.stored_per_second) > 0
    assert figures.jobs_reconciled_per_second > 0
    text = usage_table(figures)
    assert "a bare JetStream" in text
    assert "jobs reconciled: " in text
    assert list(data_dir.iterdir()) == []
