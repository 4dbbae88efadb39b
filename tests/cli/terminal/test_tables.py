"""Tables on terminals of any width: no word and no number is ever folded or cut."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest

from gpucredits.cli.billing.anomaly import show_anomalies
from gpucredits.cli.billing.statement import show_statements
from gpucredits.cli.main import main
from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.layout import column_widths, wrapped
from gpucredits.client import Client
from gpucredits.wire.billing.anomaly import AnomalyAnswer, AnomalyPage
from gpucredits.wire.billing.statement import StatementAnswer, StatementPage
from support.terminal import Terminal

STYLE = re.compile(r"\x1b\[[0-9;]*m")
AS_OF = re.compile(r"\d\d:\d\d:\d\dZ")
WIDTHS = [60, 80, 100]
# The words of each command that prints a table; {org} and {type} stand for those of the stage.
TABLES = [
    "account list {org}",
    "grant list {org} --tree",
    "topup list {org}",
    "transfers {org} --tree",
    "ledger {org} --tree",
    "usage {org}",
    "usage {org} --by day",
    "price list --type {type}",
    "reservation list {org} --tree",
    "request list {org}",
    "quota list {org}",
    "limit show {org}/computer-vision/alice",
    "budget list {org}/computer-vision",
    "budget periods {org}/computer-vision",
    "boost list {org}",
    "pool list",
    "pool weights {type}",
    "queue list {org}",
    "share show {type}",
    "key list --all",
    "audit {org}",
    "exposure {org}",
    "explain {org}/computer-vision --type {type} --gpus 4",
]
ELSEWHERE = {
    "statement list",
    "anomaly list",
    "clock status",
    "clock repair",
    "simulate",
    *("event list", "dead-letter list"),  # tests/metering/test_cli.py
    *("reconcile leases", "reconcile alarms", "reconcile list", "loss list"),  # test_reconcile.py
}  # below, with rows of their own


def lists(group: click.Group, words: tuple[str, ...] = ()) -> set[str]:
    """The commands that list something."""
    found: set[str] = set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= lists(command, (*words, name))
        elif command is not None:
            is_paged = any("--all" in param.opts for param in command.params)
            found |= {" ".join((*words, name))} if is_paged or name == "list" else set()
    return found


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest) -> dict[str, str]:
    """An org with long names and some of everything that is listed."""
    server = request.getfixturevalue("server")
    org = f"globex-research-{os.urandom(3).hex()}"
    kind = f"h100-{os.urandom(3).hex()}"
    project = f"{org}/computer-vision"
    with Client(server.url, server.key) as client:
        for path in (org, project, f"{project}/alice"):
            client.create_account(path, metadata={"team": "research", "cost-centre": "4711-b"})
        client.set_price(kind, "123.456789")
        client.set_price(kind, "98.5", account=org)
        client.issue(org, "1234567.891011", expires_at="2030-01-01T00:00:00Z")
        client.issue(org, "0.5", source="promo")
        client.create_topup(org, "12345.678", payment_reference="invoice-2026-0001001")
        client.transfer(org, project, "60000.125", metadata={"why": "the third quarter"})
        lease = client.reserve(f"{project}/alice", job_id="train-large-7", gpu_type=kind)
        client.reserve(project, job_id="evaluate", gpu_type=kind, gpu_count=2)
        client.advance_clock(61)
        client.extend(lease.reservation_id, seq=1, used_ms=60_500)
        client.settle(lease.reservation_id)
        client.set_quota(org, "concurrent_gpus", 64, gpu_type=kind)
        client.set_quota(
            org, "credits_per_window", "100000", calendar="month", zone="Europe/Berlin"
        )
        client.add_boost(
            org, 4, dimension="concurrent_gpus", gpu_type=kind, ends_at="2030-01-01T00:00:00Z",
            note="the deadline of the paper on evaluation",
        )  # fmt: skip
        client.set_budget(project, "1234.5", calendar="month", rollover="all", warn_percent=[80])
        client.set_pool(kind, capacity=8)
        client.change_weights(kind, weights=[{"account": org, "weight": 3}])
        client.enqueue(project, job_id="wide-sweep", gpu_type=kind, gpu_count=8)
        client.ask(project, "credits", "500.25", reason="the paper on evaluation is due this week")
        client.create_key("member", scope=project, name="the notebook of alice")
    return {"org": org, "type": kind}


def tokens(text: str) -> set[str]:
    """The words of a text, but for lines of column names."""
    lines = [line for line in text.splitlines() if line != line.upper() or re.search(r"\d", line)]
    return {word for line in lines for word in line.lower().split()}


def require_whole(shown: str, plain: str, width: int) -> None:
    """What is shown has every word of the plain text, and no line that is too long."""
    text = STYLE.sub("", shown)
    assert tokens(plain) <= {word for line in text.splitlines() for word in line.lower().split()}
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_every_list_is_looked_at() -> None:
    """No command that lists something is left out below."""
    named = {" ".join(word for word in line.split() if word[0] not in "{-") for line in TABLES}
    assert lists(main) <= named | ELSEWHERE


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", TABLES)
def test_a_table_folds_no_word(
    terminal: Terminal, stage: dict[str, str], line: str, width: int
) -> None:
    """Every word and number of the plain table stands whole on a terminal of this width."""
    words = line.format(**stage).split()
    plain = terminal.run(*words)
    assert plain.exit_code in (0, 4), plain.output
    assert len(plain.stdout.splitlines()) > 1
    shown = terminal.run(*words, FORCE_COLOR="1", NO_COLOR="1", COLUMNS=str(width))
    texts = shown.stdout, plain.stdout
    if line.startswith("exposure"):  # it tells when it was asked
        texts = AS_OF.sub("now", texts[0]), AS_OF.sub("now", texts[1])
    require_whole(*texts, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_refusal_folds_no_word(terminal: Terminal, stage: dict[str, str], width: int) -> None:
    """Its sentence and its table of gates break between words."""
    words = "reserve {org} --job j --type {type} --gpus 900".format(**stage).split()
    plain = terminal.run(*words)
    assert plain.exit_code == 1
    shown = terminal.run(*words, FORCE_COLOR="1", NO_COLOR="1", COLUMNS=str(width))
    request = re.compile(r"req_\w+")
    require_whole(request.sub("", shown.stderr), request.sub("", plain.stderr), width)


def statements() -> StatementPage:
    """Two months of an account."""
    return StatementPage(
        statements=[
            StatementAnswer(
                statement_id=f"stm_1_{number}",
                account="globex-research/computer-vision",
                period=f"2026-0{number}",
                starts_at="2026-02-01T00:00:00Z",
                ends_at="2026-03-01T00:00:00Z",
                opening="0",
                charges="1234567.891011",
                payments="0",
                credits="0",
                closing="-1234567.891011",
                amount="1234567.891011",
                paid="1000000.000001",
                outstanding="234567.89101",
                state="open",
                closed_at="2026-03-01T00:00:00Z",
                due_at="2026-03-15T00:00:00Z",
            )
            for number in (1, 2)
        ],
        next_cursor=None,
    )


def anomalies() -> AnomalyPage:
    """An unusual hour."""
    return AnomalyPage(
        anomalies=[
            AnomalyAnswer(
                anomaly_id="anm_1_4711",
                account="globex-research/computer-vision",
                starts_at="2026-03-01T12:00:00Z",
                ends_at="2026-03-01T13:00:00Z",
                found_at="2026-03-01T13:00:01Z",
                baseline_hours=168,
                ratio_percent=400,
                floor="100",
                sentence="",
                observed="1234567.891011",
                threshold="400000.000004",
                baseline="100000.000001",
                action="suspended",
            )
        ],
        next_cursor=None,
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["statements", "anomalies"])
def test_rows_that_take_months_to_make(
    kind: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements and unusual hours are shown whole as well."""

    def show() -> str:
        show_statements(statements()) if kind == "statements" else show_anomalies(anomalies())
        return capsys.readouterr().out

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    plain = show()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    require_whole(show(), plain, width)


def test_a_pipe_gets_everything(terminal: Terminal, stage: dict[str, str]) -> None:
    """Where no terminal is, rows are not wrapped, however narrow COLUMNS says it is."""
    words = ["account", "list", stage["org"]]
    assert terminal.run(*words, COLUMNS="20").stdout == terminal.run(*words, COLUMNS="200").stdout


def test_facts_wrap_between_words(terminal: Terminal, stage: dict[str, str]) -> None:
    """A long fact of one thing breaks between words, below its beginning."""
    [request] = terminal.json("request", "list", stage["org"])["requests"]
    shown = terminal.run(
        "request", "show", request["request_id"], FORCE_COLOR="1", NO_COLOR="1", COLUMNS="40"
    )
    lines = STYLE.sub("", shown.stdout).splitlines()
    begun = next(place for place, line in enumerate(lines) if line.startswith("reason"))
    assert lines[begun : begun + 2] == [
        "reason      the paper on evaluation is",
        "            due this week",
    ]


def test_widths() -> None:
    """Prose gives way before dates, dates stand above their times, and then there is no table."""
    table = [
        ["id", "when", "why"],
        ["grt_1_4", "2026-03-01 12:00:00Z", "a reason of some words"],
    ]
    assert column_widths(table, 60) == [7, 20, 22]
    assert column_widths(table, 45) == [7, 20, 14]
    assert column_widths(table, 30) == [7, 10, 9]
    assert column_widths(table, 26) is None or sum(column_widths(table, 26) or []) <= 22
    assert column_widths(table, 22) is None
    assert wrapped("acme/vision-long-name is", 8) == ["acme/vision-long-name", "is"]


def test_rows_without_room_are_blocks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each fact, an empty line between rows, and nothing for what is empty."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    rows = [["a" * 20, "1234567.891011", ""], ["b" * 20, "2", "x"]]
    output.print_table(["account", ">amount", "note"], rows, empty="")
    assert STYLE.sub("", capsys.readouterr().out) == (
        f"account  {'a' * 20}\namount   1234567.891011\n\n"
        f"account  {'b' * 20}\namount   2\nnote     x\n"
    )


def test_a_real_terminal_is_measured(terminal: Terminal, stage: dict[str, str]) -> None:
    """On a terminal of 80 columns the width is that of the terminal, without any setting."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env |= {name: value for name, value in terminal.env.items() if value} | {"TERM": "xterm"}
    program = Path(sys.executable).with_name("gpucredits")
    with subprocess.Popen(
        [program, "quota", "list", stage["org"]], env=env, stdout=follower, stdin=follower
    ) as running:
        os.close(follower)
        shown = b""
        try:
            while part := os.read(leader, 65_536):
                shown += part
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(leader)
    assert running.returncode == 0
    plain = terminal.text("quota", "list", stage["org"])
    require_whole(shown.decode().replace("\r\n", "\n"), plain, 80)
