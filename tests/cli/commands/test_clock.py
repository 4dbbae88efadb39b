"""Clocks of orgs on the command line, against a real server that believed a wrong clock."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from support.scenes.clocks import server_after_a_wrong_clock
from support.terminal import Terminal

WHY = ("--reason", "NTP was two days ahead")


class Address(NamedTuple):
    """Where a server and its data are, and a key."""

    url: str
    key: str
    data_dir: Path


def test_an_operator_finds_rehearses_and_repairs(data_dir: Path) -> None:
    """Status lists the org, a dry run says what would change, and --all repairs once."""
    with server_after_a_wrong_clock(data_dir) as server:
        terminal = Terminal(Address(server.url, server.admin_secret, data_dir))
        assert "acme" in terminal.text("clock", "status")
        assert terminal.json("clock", "status")["orgs"][0]["org"] == "acme"
        rehearsed = terminal.text("clock", "repair", "acme", *WHY, "--dry-run")
        assert "nothing was changed" in rehearsed
        assert "restored" in rehearsed
        [one] = terminal.json("clock", "repair", "--all", *WHY, "--dry-run")["repairs"]
        assert (one["org"], one["repaired"]) == ("acme", True)
        done = terminal.text("clock", "repair", "--all", *WHY)
        assert "restored" in done
        assert "Everything was mended." in done
        assert "No org's clock is ahead." in terminal.text("clock", "status")
        assert "No org's clock is ahead." in terminal.text("clock", "repair", "--all", *WHY)
        again = terminal.text("clock", "repair", "acme", *WHY)
        assert again == "The clock of acme is not ahead: nothing was changed.\n"
        assert terminal.json("balance", "acme")["available"] == "90"


@pytest.mark.parametrize(
    "words",
    [
        ("acme",),
        (*WHY,),
        ("acme", "--all", *WHY),
        ("--all", *WHY, "--idempotency-key", "k"),
        ("acme", "--reason", ""),
    ],
)
def test_a_repair_needs_one_org_and_a_reason(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Whoever forgets one of them is told, and nothing is changed."""
    assert terminal.run("clock", "repair", *words).exit_code != 0
