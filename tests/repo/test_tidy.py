"""Rules of the house that formatters, linters and type checkers cannot see."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES_MAX = 400
LONGER = {  # one concept each, at their length: a module here may only become shorter
    "src/gpucredits/wire/scalars.py": 431,
    "tools/operations.py": 401,
    "src/gpucredits/agent/guard/guardian.py": 416,  # one job; a script imports nothing of ours
    "src/gpucredits/client/calls.py": 1_726,  # written by tools/operations.py
    "src/gpucredits/core/book.py": 410,  # the rows of an org, and what they say together
    "src/gpucredits/core/fairshare/decide.py": 480,  # one cycle of a pool
    "src/gpucredits/core/fairshare/room.py": 405,  # what could make room for work that waits
    "src/gpucredits/core/fairshare/tree.py": 425,  # tenants and their shares
    "src/gpucredits/core/rules/upkeep/counting.py": 460,  # what leases count against limits
    "src/gpucredits/service/dispatch/admission.py": 410,  # what a cycle asks of the ledger
    "src/gpucredits/store/book/changes.py": 520,  # what a batch changed: rows, spending, news
    "src/gpucredits/store/book/rows.py": 600,  # written by tools/make_rows.py
    "src/gpucredits/store/book/tables.py": 600,  # the declaration of every table
}
FUNCTION_LINES_MAX = 60
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
INDEX_ADDRESS = re.compile(r"https?://[^\s\"')]*(pypi|pythonhosted|npmjs|/simple\b)", re.IGNORECASE)


def tracked_files() -> list[Path]:
    """Files of the project: tracked by git, or all sources where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return [path for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


PYTHON = [path for path in tracked_files() if path.suffix == ".py"]
SOURCES = [
    path for path in PYTHON if {"src", "gpucredits_bench"} & set(path.relative_to(ROOT).parts)
]
TESTS = {path for path in PYTHON if path.name.startswith("test_")}


def named(path: Path) -> str:
    """A file by its place in the project."""
    return str(path.relative_to(ROOT))


class Function(NamedTuple):
    """What the rules of the house ask of a function."""

    place: str
    lines: int
    says_why: bool
    is_test: bool


class Module(NamedTuple):
    """What the rules of the house ask of a module's syntax."""

    has_docstring: bool
    functions: list[Function]
    sleeps: list[int]
    fractions: list[int]  # lines with a float or a true division


@cache
def read(path: Path) -> Module:
    """A module, parsed once; its tree is not kept."""
    tree = ast.parse(path.read_text())
    found = Module(bool(ast.get_docstring(tree)), [], [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            is_test = path in TESTS and node.name.startswith("test_")
            says_why = bool(ast.get_docstring(node))
            found.functions.append(
                Function(f"{named(path)}: {node.name}", lines, says_why, is_test)
            )
        elif (
            isinstance(node, ast.Attribute)
            and node.attr == "sleep"
            and isinstance(node.value, ast.Name)
            and node.value.id == "time"
        ):
            found.sleeps.append(node.lineno)
        elif (isinstance(node, ast.Constant) and isinstance(node.value, float)) or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        ):
            found.fractions.append(getattr(node, "lineno", 0))
    return found


def test_modules_stay_small() -> None:
    """A module fits in one head."""
    lines = {named(path): len(path.read_text().splitlines()) for path in PYTHON}
    assert {
        name: count for name, count in lines.items() if count > LONGER.get(name, MODULE_LINES_MAX)
    } == {}


def test_functions_stay_small() -> None:
    """A function fits on one screen."""
    every = [each for path in PYTHON for each in read(path).functions]
    assert len(every) > len(PYTHON)
    assert [each for each in every if each.lines > FUNCTION_LINES_MAX] == []


def test_modules_say_what_they_own() -> None:
    """Every module opens with a docstring, and its name is a noun that means something."""
    assert [named(path) for path in SOURCES if not read(path).has_docstring] == []
    assert [named(path) for path in SOURCES if path.stem in VAGUE_NAMES] == []


def test_tests_say_what_they_prove() -> None:
    """Every test carries a sentence on what it proves."""
    every = [each for path in TESTS for each in read(path).functions if each.is_test]
    assert len(every) > len(TESTS)
    assert [each.place for each in every if not each.says_why] == []


def test_tests_do_not_sleep() -> None:
    """Tests wait for a condition with a deadline, never for time to pass."""
    assert {named(path): found for path in TESTS if (found := read(path).sleeps)} == {}


def test_nothing_is_left_for_later_in_the_sources() -> None:
    """What is not done is an issue, not a comment."""
    marked = [named(path) for path in PYTHON if MARKS.search(path.read_text())]
    assert not marked


def test_rules_use_no_floats() -> None:
    """Money and time in the rules are integers: no float literal, no true division."""
    rules = [path for path in SOURCES if {"core", "timeline"} & set(path.parts)]
    assert rules
    assert {named(path): found for path in rules if (found := read(path).fractions)} == {}


def test_no_file_names_a_package_index() -> None:
    """Versions and hashes are pinned; where packages come from is the machine's business."""
    guilty = [
        named(path)
        for path in tracked_files()
        if path.suffix in {".py", ".toml", ".lock", ".md", ".txt", ".cfg", ".yml", ".sh", ""}
        and INDEX_ADDRESS.search(path.read_text(errors="replace"))
    ]
    assert not guilty


def test_every_pinned_version_has_a_hash() -> None:
    """The lock file holds versions and hashes, and nothing else."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if "==" in line]
    hashes = [line for line in lines if line.strip().startswith("--hash=sha256:")]
    assert len(pins) + len(hashes) == len([line for line in lines if line.strip()])
    assert len(hashes) >= len(pins) > 0
