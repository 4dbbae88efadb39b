"""The documentation is true and readable: examples run, links and paths exist, lines are short."""

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
ANCHOR = re.compile(r"\[[^\]]+\]\(([^)#\s]*)#([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
# Sources are named from the root or from the package: `core/reasons.py`, `tests/repo/`.
SOURCE = re.compile(
    r"(?<![\w./-])(?:(?:[\w<>.-]+/)+[\w<>-]+\.(?:py|sql|lua)(?!\w)"
    r"|(?:src|tests|tools|bench|docs)/[\w<>./-]*[\w>/])"
)
EXAMPLE = re.compile(r"```(?:python|pycon)\n(.*?)```", re.DOTALL)
SNIPPET = re.compile(r"^`([\w/]+\.py)`\n```python\n(.*?)```", re.DOTALL | re.MULTILINE)
COMMAND_FILES_MAX = 7  # for one command, client and CLI included
COLUMNS_MAX = 100
PARAGRAPH_LINES_MAX = 5


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


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make, as forges make them."""
    titles = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_anchors_lead_to_headings(page: Path) -> None:
    """Every link to a part of a page names a heading of that page."""
    broken = [
        f"{target}#{anchor}"
        for target, anchor in ANCHOR.findall(page.read_text())
        if "://" not in target and anchor not in anchors(page.parent / target if target else page)
    ]
    assert not broken


def exists(path: str) -> bool:
    """Whether a path is in the repository or in the package; `<noun>` stands for any name."""
    pattern = re.sub(r"<\w+>", "*", path.rstrip("/"))
    return any(any(base.glob(pattern)) for base in (ROOT, ROOT / "src" / "gpucredits"))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_named_sources_exist(page: Path) -> None:
    """Every source file or folder that a page names is in the repository."""
    assert [path for path in SOURCE.findall(page.read_text()) if not exists(path)] == []


def test_a_source_that_does_not_exist_is_seen() -> None:
    """The search for sources is not blind: it finds paths of every form, and the false one."""
    text = "`core/reasons.py`, `src/gpucredits/wire/<noun>.py`, tests/repo and `store/no_such.py`."
    found = SOURCE.findall(text)
    assert len(found) == 4
    assert [path for path in found if not exists(path)] == ["store/no_such.py"]


def paragraphs(text: str) -> list[list[str]]:
    """The lines of each paragraph and list item, without code, tables, headings and pictures."""
    found: list[list[str]] = [[]]
    for line in FENCE.sub("", text).splitlines():
        if not line.strip() or line[0] in "|#!":
            found.append([])
        elif ITEM.match(line):
            found.append([line])
        else:
            found[-1].append(line)
    return [lines for lines in found if lines]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_prose_is_short(page: Path) -> None:
    """No line of prose is wider than a screen, and no paragraph hides a table or a list."""
    found = paragraphs(page.read_text())
    assert [line for lines in found for line in lines if len(line) > COLUMNS_MAX] == []
    assert [lines[0] for lines in found if len(lines) > PARAGRAPH_LINES_MAX] == []


def test_long_prose_is_seen() -> None:
    """The check of prose is not blind: it sees a paragraph and an item, and no code or table."""
    text = "a\nb\n\n- c\n  d\n```\ncode\n```\n| table |\n# head\ne"
    assert paragraphs(text) == [["a", "b"], ["- c", "  d"], ["e"]]


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
    others = ("store/book/changes.py", "service/reconciliation/drift_alarms.py")
    sources = [ROOT / "src/gpucredits" / part for part in (*others, *billing)]
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


def test_the_glossary_has_one_meaning_for_each_word() -> None:
    """No word has two rows, unless something like ``(of a lease)`` behind it tells them apart."""
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )
    words = [word for row in rows if row not in {"word", "---"} for word in row.split(", ")]
    assert len(words) > len(PAGES)
    assert sorted(word for word in set(words) if words.count(word) > 1) == []
