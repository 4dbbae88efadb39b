"""With --json every end of a command is one JSON document on stdout, and stderr has no error."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucredits.cli.server import verify
from gpucredits.client import Client
from support.faults.faulty_proxy import Fault, faulty_proxy
from support.terminal import Terminal

SHAPE = {"title", "reason", "detail"}


def failed(terminal: Terminal, code: int, *words: str, **env: str | None) -> Any:
    """The document that a command prints which ends with an exit code; stderr is empty."""
    result = terminal.run(*words, "--json", **env)
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    assert result.stdout.count("\n") == 1
    told = json.loads(result.stdout)
    assert set(told) >= SHAPE
    return told


def unused_url() -> str:
    """An address at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["balance", "acme", "--gpus", "2"], "--gpus"),
        (["balance", "acme", "--at", "yesterday"], "--at"),
        (["balance", "acme", "--at", "now", "--at", "now"], "--at"),
        (["balance", "Acme"], "ACCOUNT"),
        (["balance"], "ACCOUNT"),
        (["balance", "acme", "--at"], "--at"),
        (["quota", "set", "acme", "gpus", "4"], "DIMENSION"),
        (["reserve", "acme", "--job", "j"], "--type"),
        (["reserve", "acme", "--job", "j", "--type", "t", "--window", "9w"], "--window"),
        (["reserve", "acme", "--job", "j", "--type", "t", "--window", "1ms"], "--window"),
        (["explain", "--type", "h100"], None),
        (["balance", "acme", "--url", "nonsense"], "--url"),
        (["balance", "acme", "--ca-file", "/no/such/file"], "--ca-file"),
        (["share", "replay", "/no/such/file"], "FILE"),
        (["verify", "--heads", "/no/such/file"], "--heads"),
        (["serve", "--port", "99999"], "--port"),
        (["dance"], None),
        (["grant", "dance"], None),
        (["--dance"], "--dance"),
        (["demo"], "--json"),
    ],
)
def test_wrong_usage(terminal: Terminal, words: list[str], field: str | None) -> None:
    """Exit code 2, and the option or argument that is wrong."""
    told = failed(terminal, 2, *words, GPUCREDITS_URL="http://127.0.0.1:1")
    assert (told["title"], told["reason"]) == ("Wrong usage", "wrong_usage")
    assert told.get("field") == field
    assert "Usage:" not in told["detail"]


def test_no_key_and_broken_settings(terminal: Terminal, tmp_path: Path) -> None:
    """What is missing or broken on this machine is wrong usage too."""
    assert "--key" in failed(terminal, 2, "balance", "acme", GPUCREDITS_API_KEY=None)["detail"]
    (tmp_path / "server.json").write_text("{")
    unset = {"GPUCREDITS_URL": None, "GPUCREDITS_API_KEY": None}
    words = ("balance", "acme", "--data-dir", str(tmp_path))
    assert "server.json" in failed(terminal, 2, *words, **unset)["detail"]
    (tmp_path / "server.json").unlink()
    assert "admin.key" in failed(terminal, 2, *words, **unset)["detail"]
    (tmp_path / "admin.key").write_bytes(b"\xff\xfe")
    assert "admin.key cannot be read" in failed(terminal, 2, *words, **unset)["detail"]
    (tmp_path / "admin.key").write_text("gck_x")
    away = failed(terminal, 3, *words, **unset)
    assert away["reason"] == "unavailable"
    assert "no server runs on" in away["detail"]
    empty = failed(terminal, 2, "balance", "acme", "--key", "")
    assert "No API key" in empty["detail"]


def test_a_server_that_is_away(terminal: Terminal) -> None:
    """Exit code 3, and nothing was done."""
    told = failed(terminal, 3, "balance", "acme", "--url", unused_url(), "--timeout", "0.2s")
    assert (told["title"], told["reason"]) == ("Unavailable", "unavailable")
    assert "no server answers at" in told["detail"]
    assert "status" not in told


def test_an_answer_that_was_lost_names_its_key(terminal: Terminal, org: str) -> None:
    """Exit code 3, and the key with which the doubt ends."""
    with faulty_proxy(terminal.server.url) as proxy:
        proxy.plan.extend([Fault.SWALLOW_REPLY] * 50)
        words = ("grant", "issue", org, "10", "--url", proxy.url)
        told = failed(terminal, 3, *words, "--timeout", "0.3")
        proxy.plan.clear()
        assert (told["title"], told["reason"]) == ("Outcome unknown", "outcome_unknown")
        terminal.json(*words, "--idempotency-key", told["idempotency_key"])
    assert terminal.json("balance", org)["available"] == "10"


def test_a_server_that_is_too_busy_says_when(terminal: Terminal, org: str) -> None:
    """Exit code 3: the server's own reason and status, and when to ask again."""
    with faulty_proxy(terminal.server.url) as proxy:
        proxy.retry_after = "3600"
        proxy.plan.append(Fault.BUSY)
        told = failed(terminal, 3, "grant", "issue", org, "10", "--url", proxy.url)
    assert (told["reason"], told["status"], told["retry_after_seconds"]) == ("busy", 503, 3_600)


def test_a_refusal_is_the_servers_problem_as_it_came(
    terminal: Terminal, client: Client, org: str
) -> None:
    """Exit code 1, with all that the server said: the numbers and the gates."""
    client.issue(org, "5")
    told = failed(terminal, 1, "reserve", org, "--job", "j", "--type", "h100")
    assert (told["reason"], told["status"]) == ("insufficient_credits", 402)
    assert told["gates"][0]["limit"] == "5"
    assert told["request_id"]
    missing = failed(terminal, 1, "heartbeat", "rsv_1_zzz", "--used", "1s")
    assert missing["reason"] == "reservation_unknown"
    unknown = failed(terminal, 1, "balance", org, "--key", "gck_wrong")
    assert unknown["status"] == 401


def test_commands_without_a_server_fail_in_the_same_shape(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checking books that are away, and serving where that cannot be."""
    url = "postgresql://nobody@127.0.0.1:1/none"
    monkeypatch.setattr(verify, "POOL", replace(verify.POOL, connect_deadline_s=0.2))
    away = failed(terminal, 3, "verify", "--database-url", url)
    assert (away["title"], away["reason"]) == ("Unavailable", "unavailable")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("serve", "--port", str(port), "--data-dir", str(tmp_path / "data"))
        told = failed(terminal, 1, *words, "--database-url", url)
    assert (told["title"], told["reason"]) == ("Failed", "failed")
    assert f"cannot listen on 127.0.0.1:{port}" in told["detail"]


def test_heads_that_cannot_be_kept_are_one_document_too(terminal: Terminal, tmp_path: Path) -> None:
    """A check whose heads cannot be written prints what went wrong, and nothing before it."""
    data_dir, path = str(terminal.server.data_dir), str(tmp_path / "no" / "heads.json")
    told = failed(terminal, 2, "verify", "--data-dir", data_dir, "--export-heads", path)
    assert f"{path} cannot be written" in told["detail"]
    assert told["field"] == "--export-heads"


def test_what_is_no_error_keeps_its_document(terminal: Terminal, org: str) -> None:
    """An explanation that says no is an answer: exit code 4; notes go to stderr."""
    result = terminal.run("explain", org, "--type", "h100", "--json")
    assert (result.exit_code, result.stderr) == (4, "")
    assert json.loads(result.stdout)["admitted"] is False
    dry = terminal.run("grant", "issue", org, "1", "--dry-run", "--json")
    assert (dry.exit_code, dry.stderr) == (0, "Dry run: nothing was changed.\n")
    assert json.loads(dry.stdout)["amount"] == "1"


def test_a_word_after_two_dashes_asks_for_no_json(terminal: Terminal) -> None:
    """What follows ``--`` is no option, so that errors stay words for people."""
    result = terminal.run("balance", "--", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for 'ACCOUNT'" in result.stderr


def test_an_interrupt_has_its_own_exit_code(terminal: Terminal) -> None:
    """^C ends a command with 130, as shells expect, not with the code of a refusal."""
    program = Path(sys.executable).with_name("gpucredits")
    env = {**os.environ, **{name: value for name, value in terminal.env.items() if value}}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen(
            [program, "balance", "acme", "--url", url, "--timeout", "60s"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as waiting:
            try:
                silent.settimeout(60)
                asked, _ = silent.accept()  # the command now waits for an answer
                with asked:
                    waiting.send_signal(signal.SIGINT)
                    out, err = waiting.communicate(timeout=60)
            finally:
                waiting.kill()
    assert (waiting.returncode, out, err) == (130, "", "Interrupted.\n")
