"""Version 2, the one that is written: four sections of columns.

Owns the layout described in docs/dump-format.md. Must not know how a history is replayed.
"""

from __future__ import annotations

import hashlib
import struct

from gpucredits.library.dump.column import (
    decode_integers,
    decode_names,
    decode_sorted,
    encode_integers,
    encode_names,
    encode_sorted,
)
from gpucredits.library.dump.history import Charges, Grants, History, PendingRefunds, Refunds
from gpucredits.library.dump.reader import DumpError, Reader, check_not_negative, check_unique

VERSION = 2
SECTIONS = ("grants", "charges", "refunds", "waiting refunds")
_CHECKSUM_BYTES = 32


def write_body(history: History, preamble: bytes) -> bytes:
    """The whole dump, given the bytes that every version begins with."""
    grants, charges, refunds, waiting = (
        history.grants,
        history.charges,
        history.refunds,
        history.waiting,
    )
    lengths = [end - start for start, end in zip(grants.starts, grants.expirations, strict=True)]
    sections = [
        encode_sorted(grants.starts)
        + encode_integers(lengths)
        + encode_integers(grants.amounts)
        + encode_names(grants.names),
        encode_sorted(charges.times)
        + encode_integers(charges.amounts)
        + encode_names(charges.names),
        encode_sorted(refunds.times)
        + encode_integers(refunds.amounts)
        + encode_integers(refunds.charges),
        encode_sorted(waiting.times)
        + encode_integers(waiting.amounts)
        + encode_names(waiting.names),
    ]
    rows = [len(grants.starts), len(charges.times), len(refunds.times), len(waiting.times)]
    sizes = zip(rows, map(len, sections), strict=True)
    data = b"".join(
        [preamble, struct.pack("<H", 0), *(struct.pack("<QQ", *pair) for pair in sizes), *sections]
    )
    return data + hashlib.sha256(data).digest()


def read_body(data: bytes, start: int) -> History:
    """Read and check everything after the version."""
    head = Reader(data, start, len(data))
    (flags,) = head.unpack("H", "the header")
    if flags:
        raise DumpError(f"the header has the unknown flags {flags:#x}; none are known")
    sizes = [head.unpack("QQ", "the header") for _ in SECTIONS]
    first = start + 2 + 16 * len(SECTIONS)
    _check_whole(data, first + sum(size for _, size in sizes))
    readers = []
    for _, size in sizes:
        readers.append(Reader(data, first, first + size))
        first += size
    rows = [count for count, _ in sizes]
    history = History(
        _read_grants(readers[0], rows[0]),
        _read_charges(readers[1], rows[1]),
        _read_refunds(readers[2], rows[2], rows[1]),
        _read_waiting(readers[3], rows[3]),
    )
    for reader, name in zip(readers, SECTIONS, strict=True):
        reader.finish(f"the {name}")
    return history


def _check_whole(data: bytes, stop: int) -> None:
    expected = stop + _CHECKSUM_BYTES
    if len(data) < expected:
        raise DumpError(f"truncated: {len(data)} of {expected} bytes")
    if len(data) > expected:
        raise DumpError(f"{len(data) - expected} trailing bytes after the checksum")
    if hashlib.sha256(memoryview(data)[:stop]).digest() != data[stop:]:
        raise DumpError("corrupt: the checksum does not match the content")


def _read_grants(reader: Reader, rows: int) -> Grants:
    starts = decode_sorted(reader, rows, "grant starts")
    lengths = decode_integers(reader, rows, "grant lengths")
    check_not_negative(lengths, "grant lengths")
    amounts = decode_integers(reader, rows, "grant amounts")
    check_not_negative(amounts, "grant amounts")
    names = decode_names(reader, rows, "grant ids")
    if None in names:
        raise DumpError("a grant has no id")
    return Grants(starts, list(map(int.__add__, starts, lengths)), amounts, names)


def _read_charges(reader: Reader, rows: int) -> Charges:
    times = decode_sorted(reader, rows, "charge timestamps")
    amounts = decode_integers(reader, rows, "charge amounts")
    check_not_negative(amounts, "charge amounts")
    names = decode_names(reader, rows, "charge ids")
    check_unique(names, "charge id")
    return Charges(times, amounts, names)


def _read_refunds(reader: Reader, rows: int, charges: int) -> Refunds:
    times = decode_sorted(reader, rows, "refund timestamps")
    amounts = decode_integers(reader, rows, "refund amounts")
    check_not_negative(amounts, "refund amounts")
    targets = decode_integers(reader, rows, "refunded charges")
    if targets and not 0 <= min(targets) <= max(targets) < charges:
        raise DumpError(f"a refund names a charge outside the {charges} there are")
    return Refunds(times, amounts, targets)


def _read_waiting(reader: Reader, rows: int) -> PendingRefunds:
    times = decode_sorted(reader, rows, "waiting refund timestamps")
    amounts = decode_integers(reader, rows, "waiting refund amounts")
    check_not_negative(amounts, "waiting refund amounts")
    names = decode_names(reader, rows, "waiting refund charge ids")
    if None in names:
        raise DumpError("a waiting refund names no charge")
    return PendingRefunds(times, amounts, names)
