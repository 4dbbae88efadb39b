"""What is read and what is guarded, for tests of pages that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpucredits.store import book, book_save
from gpucredits.store.needs import Needs
from gpucredits.store.statement import Part


def without(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    """Save whether a condition of the guard holds or not."""
    guarded: Callable[[tuple[Part, ...]], str] = vars(book_save)["guarded_statement"]

    def heedless(parts: tuple[Part, ...]) -> str:
        text = guarded(parts)
        assert condition in text
        return text.replace(condition, f"({condition} OR true)")

    monkeypatch.setattr(book_save, "guarded_statement", heedless)


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[Needs]:
    """What is read from now on."""
    reads: list[Needs] = []
    read = book.read

    async def counted(connection: Any, needs: Needs, *rest: Any) -> None:
        reads.append(needs)
        await read(connection, needs, *rest)

    monkeypatch.setattr(book, "read", counted)
    return reads
