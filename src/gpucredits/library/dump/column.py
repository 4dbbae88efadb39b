"""Columns of integers and of names as bytes.

Integers are stored as their distance from the smallest (or, in order of time, from the one before),
in the narrowest of four widths, so that reading is one copy and one pass of arithmetic. Integers
beyond 64 bits have an encoding of their own. Owns the encodings. Must not know what a column means.
"""

from __future__ import annotations

import struct
import sys
from array import array
from itertools import accumulate, pairwise

from gpucredits.library.dump.reader import DumpError, Reader, check_sorted

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
DELTA = 0x10
WIDE = 0x20
LINES, LENGTHS = 1, 2

_INT64 = range(-(1 << 63), 1 << 63)


def encode_integers(values: list[int]) -> bytes:
    """Encode a column as distances from its smallest value."""
    base = min(values, default=0)
    return _encode(values, base, [value - base for value in values], 0)


def encode_sorted(values: list[int]) -> bytes:
    """Encode a column that never falls as distances from the value before."""
    base = values[0] if values else 0
    steps = [0, *(after - before for before, after in pairwise(values))]
    return _encode(values, base, steps[: len(values)], DELTA)


def _encode(values: list[int], base: int, offsets: list[int], flag: int) -> bytes:
    top = max(offsets, default=0)
    width = next((width for width in CODES if top < 1 << (8 * width)), None)
    if width is None or base not in _INT64:
        return _encode_wide(values)
    cells = array(CODES[width], offsets)
    if sys.byteorder == "big":
        cells.byteswap()
    return struct.pack("<Bq", flag | width, base) + cells.tobytes()


def _encode_wide(values: list[int]) -> bytes:
    cells = [value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True) for value in values]
    return (
        struct.pack("<B", WIDE) + encode_integers([len(cell) for cell in cells]) + b"".join(cells)
    )


def decode_integers(reader: Reader, rows: int, what: str) -> list[int]:
    """Decode what either integer encoding wrote."""
    (encoding,) = reader.unpack("B", what)
    if encoding == WIDE:
        return _decode_wide(reader, rows, what)
    width = encoding & ~DELTA
    if width not in CODES:
        raise DumpError(f"{what} has the unknown encoding {encoding}")
    (base,) = reader.unpack("q", what)
    cells = array(CODES[width])
    cells.frombytes(reader.take(rows * width, what))
    if sys.byteorder == "big":
        cells.byteswap()
    if not encoding & DELTA:
        return [cell + base for cell in cells] if base else cells.tolist()
    if rows:
        return [time + base for time in accumulate(cells)] if base else list(accumulate(cells))
    return []


def decode_sorted(reader: Reader, rows: int, what: str) -> list[int]:
    """Decode a column and check that it never falls."""
    values = decode_integers(reader, rows, what)
    check_sorted(values, what)
    return values


def _decode_wide(reader: Reader, rows: int, what: str) -> list[int]:
    sizes = decode_integers(reader, rows, what)
    if sizes and min(sizes) < 1:
        raise DumpError(f"{what} holds an integer of no bytes")
    return [int.from_bytes(reader.take(size, what), "little", signed=True) for size in sizes]


def encode_names(names: list[str | None]) -> bytes:
    """Encode names as lines of text, or by length where a line would not do."""
    whole = [name for name in names if name is not None]
    is_lines = len(whole) == len(names) and not any("\n" in name for name in whole)
    text = ("\n" if is_lines else "").join(whole).encode("utf-8", "surrogatepass")
    data = struct.pack("<BQ", LINES if is_lines else LENGTHS, len(text)) + text
    if is_lines:
        return data
    return data + encode_integers([0 if name is None else len(name) + 1 for name in names])


def decode_names(reader: Reader, rows: int, what: str) -> list[str | None]:
    """Decode what `encode_names` wrote."""
    encoding, size = reader.unpack("BQ", what)
    text = reader.text(size, what)
    if encoding == LENGTHS:
        return _decode_lengths(text, decode_integers(reader, rows, what), what)
    if encoding != LINES:
        raise DumpError(f"{what} has the unknown encoding {encoding}")
    names: list[str | None] = [*text.split("\n")] if rows or text else []
    if len(names) != rows:
        raise DumpError(f"{what} has {len(names)} names for {rows} rows")
    return names


def _decode_lengths(text: str, sizes: list[int], what: str) -> list[str | None]:
    if sizes and min(sizes) < 0:
        raise DumpError(f"{what} holds a length below zero")
    stops = list(accumulate([size - 1 if size else 0 for size in sizes]))
    if (stops[-1] if stops else 0) != len(text):
        raise DumpError(f"{what} has {len(text)} characters; its lengths say otherwise")
    return [
        text[stop - size + 1 : stop] if size else None
        for stop, size in zip(stops, sizes, strict=True)
    ]
