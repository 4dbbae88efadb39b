"""A tiny run of several servers."""

from __future__ import annotations

from pathlib import Path

import msgspec
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits_bench.runs.servers import WAYS, ServersFigures, servers_table


def test_a_run_measures_pinned_and_scattered_orgs(data_dir: Path) -> None:
    """Every way has its windows, the books add up, and nothing is left behind."""
    small = ["--orgs", "4", "--connections", "4", "--windows", "1", "--seconds", "0.5"]
    arguments = ["bench", "servers", *small, "--data-dir", str(data_dir), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    figures = msgspec.json.decode(result.stdout, type=ServersFigures)
    assert figures.verified
    assert set(figures.per_second) == set(WAYS)
    assert all(min(rates) > 0 for rates in figures.per_second.values())
    assert figures.ratios("pinned") == [1.0]
    assert "two servers, orgs scattered" in servers_table(figures)
    assert list(data_dir.iterdir()) == []
