"""The documentation is true: its examples run, its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
EXAMPLE = re.compile(r"```(?:python|pycon)\n(.*?)```", re.DOTALL)


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
