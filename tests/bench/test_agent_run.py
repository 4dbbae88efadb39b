"""A tiny run of the agent's benchmark: real jobs, figures, and nothing left behind."""

from __future__ import annotations

import msgspec
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits_bench.runs.agent import AgentFigures, agent_table


def test_an_agent_is_measured() -> None:
    """Jobs run and are read, each has a guardian, and memory and time are told."""
    words = ["bench", "agent", "--jobs", "3", "--interval", "0.3", "--seconds", "0.6", "--json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    figures = msgspec.json.decode(result.stdout.splitlines()[-1], type=AgentFigures)
    assert (figures.jobs, figures.guardians) == (3, 3)
    assert figures.readings > 1
    assert 10 < figures.memory_mb < 200
    assert figures.guardian_memory_mb > 1
    assert "guardians beside it           3" in agent_table(figures)
