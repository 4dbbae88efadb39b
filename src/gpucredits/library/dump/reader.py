"""Reading bytes that may be damaged: every step says what it wanted and what it found.

Owns DumpError and the cursor. Must not know any layout.
"""

from __future__ import annotations

import struct
from collections import Counter
from operator import le


class DumpError(ValueError):
    """A dump that cannot be loaded; the message names what is wrong with it."""


class Reader:
    """A cursor over bytes that never reads past the end."""

    def __init__(self, data: bytes, start: int, stop: int) -> None:
        self._data = memoryview(data)[:stop]
        self._at = start

    def take(self, size: int, what: str) -> memoryview:
        """The next bytes; they stay valid as long as the dump does."""
        left = len(self._data) - self._at
        if size > left:
            raise DumpError(f"truncated: {what} needs {size} bytes and {left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def unpack(self, layout: str, what: str) -> tuple[int, ...]:
        """The next fixed fields, little-endian."""
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout), what))

    def text(self, size: int, what: str) -> str:
        """The next bytes as text."""
        try:
            return str(self.take(size, what), "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise DumpError(f"{what} is not UTF-8: {error.reason}") from None

    def finish(self, what: str) -> None:
        """Check that everything was read."""
        left = len(self._data) - self._at
        if left:
            raise DumpError(f"{left} trailing bytes after {what}")


def check_not_negative(values: list[int], what: str) -> None:
    """Check that no value is below zero."""
    if values and min(values) < 0:
        raise DumpError(f"{what} holds {min(values)}; it must not be below zero")


def check_sorted(values: list[int], what: str) -> None:
    """Check that no value is below the one before it."""
    if not all(map(le, values, values[1:])):
        raise DumpError(f"{what} is not in order of time")


def check_unique(names: list[str | None], what: str) -> None:
    """Check that no name comes twice."""
    different = set(names)
    if len(different) - (None in different) != len(names) - names.count(None):
        named = [name for name in names if name is not None]
        twice = next(name for name, count in Counter(named).items() if count > 1)
        raise DumpError(f"{what} {twice!r} comes twice")
