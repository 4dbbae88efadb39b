"""What is read and what is guarded, for tests of pages that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpucredits.store.book import load, save
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.table import Part


def without(monkeypatch: pytest.MonkeyPatch, condition: str, instead: str = "({} OR true)") -> None:
    """Save whether a condition of the guard holds or not; {} stands for the condition."""
    guarded: Callable[..., str] = vars(save)["guarded_statement"]

    def heedless(parts: tuple[Part, ...], *, is_single: bool) -> str:
        text = guarded(parts, is_single=is_single)
        assert condition in text
        return text.replace(condition, instead.format(condition))

    monkeypatch.setattr(save, "guarded_statement", heedless)


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[Needs]:
    """What is read from now on."""
    reads: list[Needs] = []
    read = load.read

    async def counted(connection: Any, needs: Needs, *rest: Any) -> None:
        reads.append(needs)
        await read(connection, needs, *rest)

    monkeypatch.setattr(load, "read", counted)
    return reads
