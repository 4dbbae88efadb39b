"""Defaults that are shares of the memory."""

from __future__ import annotations

import pytest

from gpucredits.store import memory


@pytest.mark.parametrize(
    ("gib", "leases"), [(1, 131_072), (4, 524_288), (16, 2_000_000), (512, 2_000_000)]
)
def test_leases_take_an_eighth_of_the_memory_and_no_more_than_millions(
    monkeypatch: pytest.MonkeyPatch, gib: int, leases: int
) -> None:
    """A machine of 16 GiB keeps two million leases, one of 1 GiB an eighth of a million."""
    monkeypatch.setattr(memory, "memory_bytes", lambda: gib * 1024**3)
    assert memory.leases_that_fit() == leases
