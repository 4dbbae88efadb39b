"""The documentation is true: its examples run, its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from gpucredits.core.request import RequestState
from gpucredits.core.topup import TopUpStatus

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
EXAMPLE = re.compile(r"```(?:python|pycon)\n(.*?)```", re.DOTALL)
SNIPPET = re.compile(r"^`([\w/]+\.py)`\n```python\n(.*?)```", re.DOTALL | re.MULTILINE)
COMMAND_FILES_MAX = 7  # for one command, client and CLI included


def named(path: Path) -> str:
    """A short id for a parametrised test."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that exists."""
    broken = [
        target
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_examples_run(page: Path) -> None:
    """Every Python session shown in a page gives what the page says it gives."""
    session = "\n".join(block for block in EXAMPLE.findall(page.read_text()) if ">>>" in block)
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_examples_are_seen() -> None:
    """The search for examples is not blind: the library's guide has some."""
    guide = (ROOT / "docs" / "time-based-credits.md").read_text()
    assert any(">>>" in block for block in EXAMPLE.findall(guide))


def test_every_event_is_listed() -> None:
    """The table of events has each type that is ever written to the outbox, and no other."""
    billing = [
        f"service/billing/{name}.py" for name in ("anomalies", "budget_requests", "statements")
    ]
    sources = [ROOT / "src/gpucredits" / part for part in ("store/book/events.py", *billing)]
    code = "\n".join(source.read_text() for source in sources)
    written = set(re.findall(r"\"((?:account|grant|reservation|budget)\.[a-z]+)\"", code))
    written |= set(re.findall(r"announce\([^)]*?\"([a-z]+\.[a-z]+)\"", code))
    written |= {f"topup.{status.name.lower()}" for status in TopUpStatus}
    written |= {f"request.{state.name.lower()}" for state in RequestState}
    page = (ROOT / "docs" / "operating.md").read_text()
    table = page.partition("| `type` |")[2].partition("\n\n")[0]
    listed = re.findall(r"`([a-z]+\.[a-z]+)`", table)
    assert sorted(listed) == sorted(written)


def test_the_worked_example_of_a_command_is_the_code() -> None:
    """Each snippet stands in its file, and no file that knows the command is left out."""
    page = (ROOT / "docs" / "adding-a-command.md").read_text()
    snippets = SNIPPET.findall(page)
    assert len(snippets) == page.count("```python")
    untrue = [file for file, text in snippets if text not in (ROOT / file).read_text()]
    assert untrue == []
    command = re.compile(r"\b(FailTopUp|fail_top_up|fail_topup)\b")
    sources = (ROOT / "src").rglob("*.py")
    knows = {str(each.relative_to(ROOT)) for each in sources if command.search(each.read_text())}
    assert knows == {file for file, text in snippets if command.search(text)}
    assert len(knows) <= COMMAND_FILES_MAX


def test_the_tests_that_guard_a_command_are_there() -> None:
    """The files that the worked example sends a reader to exist."""
    page = (ROOT / "docs" / "adding-a-command.md").read_text()
    named = re.findall(r"`((?:src|tests)/[\w/]+\.py|(?:core|store|service)/[\w/]+\.py)`", page)
    homes = (ROOT, ROOT / "src" / "gpucredits")
    assert named
    assert [each for each in named if not any((home / each).exists() for home in homes)] == []
