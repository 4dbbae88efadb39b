"""A file or folder that cannot be used is named, with the reason, and never by a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from support.terminal import Terminal


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A folder that nobody can make, root neither: a file has the place of its parent."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "folder"


def test_a_folder_that_cannot_be_made_is_named(terminal: Terminal, blocked: Path) -> None:
    """The agent and the certificate authority say which folder, and end with 1."""
    for words in (
        ("agent", "serve", "--meter", "none", "--state-dir", str(blocked)),
        ("ca", "init", "--dir", str(blocked)),
    ):
        result = terminal.run(*words)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.splitlines()[-1] == (
            f"Error: {blocked} cannot be used: Not a directory."
        )


def test_scripts_hear_of_it_too(terminal: Terminal, blocked: Path) -> None:
    """With --json the failure is one document on stdout."""
    words = ("agent", "serve", "--meter", "none", "--state-dir", str(blocked), "--json")
    result = terminal.run(*words)
    assert (result.exit_code, result.stderr) == (1, "")
    told = json.loads(result.stdout)
    assert told["reason"] == "failed"
    assert told["detail"] == f"{blocked} cannot be used: Not a directory."


def test_a_backup_says_which_folder(terminal: Terminal, tmp_path: Path) -> None:
    """Its target is named in words, not by the number of an error."""
    folder = str(tmp_path / ("x" * 300))
    words = ["backup", folder, "--data-dir", str(terminal.server.data_dir)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3
    assert result.stderr.startswith("Unavailable: ")
    assert result.stderr.endswith(" cannot be used: File name too long.\n")
    assert "Errno" not in result.stderr


def test_an_agent_that_is_away_is_not_a_number(
    terminal: Terminal, org: str, tmp_path: Path
) -> None:
    """``run --agent`` names the socket and the command that starts an agent."""
    words = ("run", "--agent", str(tmp_path), "--account", org, "--type", "h100", "--", "true")
    result = terminal.run(*words)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: no agent answers at {tmp_path}/agent.sock: No such file or directory. "
        f"Start one with gpucredits agent serve --state-dir {tmp_path}\n"
    )
