"""Version 1, which is only read: one row after another, 64-bit fields, a CRC-32 at the end.

Owns the reader of that layout (docs/dump-format.md). Must not write anything.
"""

from __future__ import annotations

import zlib

from gpucredits.library.dump.history import Charges, Grants, History, PendingRefunds, Refunds
from gpucredits.library.dump.reader import (
    DumpError,
    Reader,
    check_not_negative,
    check_sorted,
    check_unique,
)

VERSION = 1
_CHECKSUM_BYTES = 4


def read_body(data: bytes, start: int) -> History:
    """Read and check everything after the version."""
    stop = len(data) - _CHECKSUM_BYTES
    reader = Reader(data, start, max(start, stop))
    counts = reader.unpack("III", "the header")
    history = History()
    for _ in range(counts[0]):
        _read_grant(reader, history.grants)
    for _ in range(counts[1]):
        _read_charge(reader, history.charges)
    rows = {name: row for row, name in enumerate(history.charges.names) if name is not None}
    for _ in range(counts[2]):
        _read_refund(reader, history.refunds, history.waiting, rows)
    reader.finish("the last row")
    if zlib.crc32(memoryview(data)[:stop]).to_bytes(_CHECKSUM_BYTES, "little") != data[stop:]:
        raise DumpError("corrupt: the checksum does not match the content")
    _check(history)
    return history


def _read_grant(reader: Reader, grants: Grants) -> None:
    start, expiration, amount, size = reader.unpack("qqqH", "a grant")
    grants.starts.append(start)
    grants.expirations.append(expiration)
    grants.amounts.append(amount)
    grants.names.append(reader.text(size, "a grant id"))


def _read_charge(reader: Reader, charges: Charges) -> None:
    time, amount, is_named, size = reader.unpack("qqBH", "a charge")
    charges.times.append(time)
    charges.amounts.append(amount)
    name = reader.text(size, "a charge id")
    charges.names.append(name if is_named else None)


def _read_refund(
    reader: Reader, refunds: Refunds, waiting: PendingRefunds, rows: dict[str, int]
) -> None:
    time, amount, size = reader.unpack("qqH", "a refund")
    name = reader.text(size, "a refunded charge id")
    row = rows.get(name)
    if row is None:
        waiting.times.append(time)
        waiting.amounts.append(amount)
        waiting.names.append(name)
    else:
        refunds.times.append(time)
        refunds.amounts.append(amount)
        refunds.charges.append(row)


def _check(history: History) -> None:
    grants, charges = history.grants, history.charges
    check_sorted(grants.starts, "grant starts")
    check_sorted(charges.times, "charge timestamps")
    lengths = [end - start for start, end in zip(grants.starts, grants.expirations, strict=True)]
    check_not_negative(lengths, "grant lengths")
    check_not_negative(grants.amounts, "grant amounts")
    check_not_negative(charges.amounts, "charge amounts")
    check_not_negative(history.refunds.amounts, "refund amounts")
    check_not_negative(history.waiting.amounts, "waiting refund amounts")
    check_unique(charges.names, "charge id")
