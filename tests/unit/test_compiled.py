"""Compiled modules run only while their sources say what they said when they were compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucredits.compiled import EXTENSION, RECORD, StaleError, record_of, require_fresh


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sources, of which both were compiled."""
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "book.py").write_text("PAGES = 1\n")
    (tmp_path / "core" / "money.py").write_text("CREDIT = 1_000_000\n")
    (tmp_path / RECORD).write_text(record_of(["core/book.py", "core/money.py"], tmp_path))
    for name in ("book", "money"):
        (tmp_path / "core" / f"{name}{EXTENSION}").touch()
    return tmp_path


def test_sources_that_were_compiled_as_they_are_run(folder: Path) -> None:
    """Nothing is said while every source is what was compiled, whenever it was written."""
    (folder / "core" / "book.py").touch()
    require_fresh(folder)


def test_a_source_that_has_changed_is_named(folder: Path) -> None:
    """A changed source would silently not run: it is named, with what to do."""
    (folder / "core" / "money.py").write_text("CREDIT = 1_000\n")
    with pytest.raises(StaleError, match=r"gpucredits/core/money\.py has changed.*make compiled"):
        require_fresh(folder)


def test_a_source_that_is_gone_is_named(folder: Path) -> None:
    """A module whose source was removed would still be imported."""
    (folder / "core" / "book.py").unlink()
    with pytest.raises(StaleError, match=r"gpucredits/core/book\.py"):
        require_fresh(folder)


def test_without_a_record_there_is_nothing_to_compare(folder: Path) -> None:
    """Plain sources and installed packages have no record."""
    (folder / RECORD).unlink()
    (folder / "core" / "book.py").write_text("PAGES = 2\n")
    require_fresh(folder)


def test_extensions_of_another_python_are_no_concern(folder: Path) -> None:
    """A source whose extension this Python would not load may change."""
    (folder / "core" / f"book{EXTENSION}").rename(folder / "core" / "book.another.so")
    (folder / "core" / "book.py").write_text("PAGES = 2\n")
    require_fresh(folder)
