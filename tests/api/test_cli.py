"""The command line against a real server: tables for people, JSON and exit codes for scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpucredits.cli.main import COMMANDS, main
from support.http import Caller, RunningServer, fresh_name


class Terminal:
    """Somebody at a terminal."""

    def __init__(self, server: RunningServer) -> None:
        self.environment = {
            "GPUCREDITS_URL": server.url,
            "GPUCREDITS_KEY": server.admin_secret,
            "COLUMNS": "200",
        }

    def run(self, *words: str) -> Result:
        """Type a command."""
        return CliRunner().invoke(main, list(words), env=self.environment)

    def ok(self, *words: str) -> str:
        """Type a command and expect it to work; what it prints."""
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str) -> Any:
        """Type a command with --json and read its answer."""
        return json.loads(self.ok(*words, "--json"))


@pytest.fixture
def terminal(server: RunningServer) -> Terminal:
    """A terminal with the admin's key in its environment."""
    return Terminal(server)


def test_a_life_of_credits_from_the_terminal(terminal: Terminal, admin: Caller) -> None:
    """Open accounts, issue, top up, transfer, price, reserve, report, settle and look."""
    org, gpu = fresh_name("org"), fresh_name("gpu-")
    terminal.ok("account", "create", org, "--label", "tier=gold")
    terminal.ok("account", "create", f"{org}/ml")
    terminal.ok("grant", "issue", org, "100")
    pending = terminal.json("topup", "create", org, "5.5", "--payment-reference", "inv-1")
    assert terminal.json("topup", "confirm", pending["topup_id"])["status"] == "confirmed"
    assert "inv-1" in terminal.ok("topup", "list", org)
    terminal.ok("transfer", org, f"{org}/ml", "50")
    terminal.ok("price", "set", gpu, "36")
    assert gpu in terminal.ok("price", "list", "--type", gpu)
    lease = terminal.json("reserve", f"{org}/ml", "--job", "[bold]j", "--type", gpu, "--gpus", "2")
    admin.advance(30)
    number = lease["reservation_id"]
    beat = terminal.json("heartbeat", number, "--seq", "1", "--used-ms", "30000")
    assert (beat["decision"], beat["settled"]) == ("continue", "0.6")
    assert "0.6" in terminal.ok("settle", number)
    balance = terminal.json("balance", org, "--tree")
    assert (balance["available"], balance["spent"]) == ("104.9", "0.6")
    assert "[bold]j" in terminal.ok("ledger", f"{org}/ml", "--type", "settle")
    assert "104.9" in terminal.ok("account", "tree", org)
    assert "tier=gold" in terminal.ok("account", "show", org)
    assert len(terminal.json("grant", "list", org, "--tree")["grants"]) == 3
    assert terminal.json("account", "suspend", org)["status"] == "suspended"
    assert terminal.json("account", "resume", org)["status"] == "active"


def test_keys_from_the_terminal(terminal: Terminal) -> None:
    """A key is made, listed and revoked; its secret is shown once."""
    made = terminal.json("key", "create", "--role", "read-only", "--name", "dashboards")
    assert made["secret"].startswith("gck_")
    listed = terminal.ok("key", "list", "--limit", "1000")
    assert made["key_id"] in listed
    assert made["secret"] not in listed
    assert terminal.json("key", "revoke", made["key_id"])["revoked_at"]


def test_exit_codes_say_what_happened(terminal: Terminal, org: str) -> None:
    """Scripts tell a refusal from a missing thing, a denied key and a server that is away."""
    refused = terminal.run("transfer", org, f"{org}/vision", "5")
    assert (refused.exit_code, "insufficient_credits" in refused.stderr) == (3, True)
    as_json = terminal.run("transfer", org, f"{org}/vision", "5", "--json")
    assert json.loads(as_json.stderr)["needed"] == "5"
    assert terminal.run("balance", "nowhere").exit_code == 4
    assert terminal.run("balance").exit_code == 2
    terminal.environment["GPUCREDITS_KEY"] = "gck_" + "x" * 43
    assert terminal.run("balance", org).exit_code == 5


def test_a_dry_run_from_the_terminal_changes_nothing(terminal: Terminal, org: str) -> None:
    """What would happen is shown, and has not."""
    assert terminal.json("grant", "issue", org, "5", "--dry-run")["amount"] == "5"
    assert terminal.json("balance", org)["available"] == "0"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    """Help works for every command of the table."""
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output
