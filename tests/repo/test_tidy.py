"""Rules of the house that formatters, linters and type checkers cannot see."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES_MAX = 400
LONGER = {  # one concept each
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
SOURCES = [path for path in PYTHON if "src" in path.relative_to(ROOT).parts]
TESTS = [path for path in PYTHON if path.name.startswith("test_")]


def named(path: Path) -> str:
    """A short id for a parametrised test."""
    return str(path.relative_to(ROOT))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", PYTHON, ids=named)
def test_modules_and_functions_stay_small(path: Path) -> None:
    """A module fits in one head, and a function on one screen."""
    text = path.read_text()
    assert len(text.splitlines()) <= LONGER.get(named(path), MODULE_LINES_MAX)
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in functions(ast.parse(text))
        if node.end_lineno is not None and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert not long


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_modules_say_what_they_own(path: Path) -> None:
    """Every module opens with a docstring, and its name is a noun that means something."""
    assert ast.get_docstring(ast.parse(path.read_text()))
    assert path.stem not in VAGUE_NAMES


@pytest.mark.parametrize("path", TESTS, ids=named)
def test_tests_say_what_they_prove(path: Path) -> None:
    """Every test carries a sentence on what it proves."""
    silent = [
        node.name
        for node in functions(ast.parse(path.read_text()))
        if node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert not silent


@pytest.mark.parametrize("path", TESTS, ids=named)
def test_tests_do_not_sleep(path: Path) -> None:
    """Tests wait for a condition with a deadline, never for time to pass."""
    sleeps = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sleep"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
    ]
    assert not sleeps


def test_nothing_is_left_for_later_in_the_sources() -> None:
    """What is not done is an issue, not a comment."""
    marked = [named(path) for path in PYTHON if MARKS.search(path.read_text())]
    assert not marked


def test_rules_use_no_floats() -> None:
    """Money and time in the rules are integers: no float literal, no true division."""
    for path in SOURCES:
        if not {"core", "timeline"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant):
                assert not isinstance(node.value, float), f"{named(path)}:{node.lineno}"
            if isinstance(node, ast.BinOp):
                assert not isinstance(node.op, ast.Div), f"{named(path)}:{node.lineno}"


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
