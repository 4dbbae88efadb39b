"""The page on the HTTP API is true: its requests are sent and answered as it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import httpx

from gpucredits.api.routes import routes
from gpucredits.core.account import RESERVED_SEGMENTS
from gpucredits.wire.words import BEAT_FLAGS, BEAT_REASONS
from support.servers.http import fresh_name, running_server

PAGE = Path(__file__).resolve().parents[3] / "docs" / "api.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
STEP = re.compile(r"^\$ (curl .*)\n(.*)$", re.MULTILINE)


def steps() -> list[tuple[str, Any]]:
    """(command, what the page shows of its answer) in order."""
    return [
        (command, json.loads(shown))
        for block in BLOCK.findall(PAGE.read_text())
        for command, shown in STEP.findall(block)
    ]


def sent(http: httpx.Client, secret: str, command: str) -> Any:
    """The answer to a curl command of the page."""
    values = {"AUTH": f"Authorization: Bearer {secret}", "JSON": "Content-Type: application/json"}
    for name, value in values.items():
        command = command.replace(f"${name}", value)
    headers: dict[str, str] = {}
    path, body, method = "", None, ""
    words = iter(shlex.split(command)[1:])
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-X":
            method = next(words)
        elif word == "-d":
            body = next(words)
        elif word == "-X":
            method = next(words)
        elif word.startswith("$URL"):
            path = word.removeprefix("$URL")
        else:
            assert word == "-sS", word
    usual = "GET" if body is None else "POST"
    return http.request(method or usual, path, headers=headers, content=body)


def let_run(http: httpx.Client, secret: str) -> None:
    """Jobs use the time that passes, so some passes before each report."""
    headers = {"authorization": f"Bearer {secret}", "idempotency-key": fresh_name("tick")}
    http.post("/v1/test/clock", headers=headers, json={"advance_seconds": 2}).raise_for_status()


def check(actual: Any, shown: Any, where: str) -> None:
    """Everything that the page shows is so; it may leave fields out, but no items."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in actual, f"{where}.{name}"
            check(actual[name], value, f"{where}.{name}")
    elif isinstance(shown, list):
        assert len(actual) == len(shown), where
        for number, (one, other) in enumerate(zip(actual, shown, strict=True)):
            check(one, other, f"{where}[{number}]")
    else:
        assert actual == shown, where


def test_the_requests_of_the_page_get_the_answers_it_shows(data_dir: Path, database: str) -> None:
    """Every request, in order, on a fresh server."""
    listed = steps()
    assert len(listed) > 15
    with (
        running_server(data_dir, "--database-url", database, "--test-clock") as server,
        httpx.Client(base_url=server.url) as http,
    ):
        for command, shown in listed:
            if '"used_ms"' in command:
                let_run(http, server.admin_secret)
            answer = sent(http, server.admin_secret, command)
            check(answer.json(), shown, command)
            is_repeat = "2026-03'" in command and shown.get("grant_id") and "state" not in shown
            assert ("idempotency-replayed" in answer.headers) is bool(is_repeat), command


def rows() -> list[str]:
    """The table of all paths as it has to be, in the order of the route table."""
    by_path: dict[str, list[str]] = {}
    for route in routes(has_test_clock=True):
        by_path.setdefault(route.path, []).append(f"`{route.method}` {route.summary}")
    shown = [f"| `{path}` | {'; '.join(told)} |" for path, told in by_path.items()]
    return [row.replace("``", "`") for row in shown]


def test_the_page_lists_every_path() -> None:
    """The table of all paths is the route table, no more and no less, word for word."""
    _, _, section = PAGE.read_text().partition("\n## All paths\n")
    listed = re.findall(r"^\| `/.*$", section, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert sorted(listed) == sorted(rows())


def test_the_page_names_what_may_not_stand_in_a_path() -> None:
    """Every reserved word is on the page, where the paths of accounts are explained."""
    _, _, section = PAGE.read_text().partition("\n## Paths of accounts\n")
    told = set(re.findall(r"`([a-z-]+)`", section.partition("\n## ")[0])) - {"org", "a-z"}
    assert told == RESERVED_SEGMENTS | {"-"}


def test_the_page_explains_every_word_that_a_beat_is_told() -> None:
    """No reason and no flag of a heartbeat is left out of the page."""
    text = PAGE.read_text()
    assert [word for word in (*BEAT_REASONS, *BEAT_FLAGS) if f"`{word}`" not in text] == []


def test_every_path_of_the_page_exists() -> None:
    """No request of the page is for a path that the table of routes does not have."""
    paths = {route.path for route in routes(has_test_clock=True)}
    text = PAGE.read_text()
    for named in re.findall(r"`(/v1/[a-z./]+)`", text):
        assert named in paths, named
