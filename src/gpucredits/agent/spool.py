"""An append-only file of records that survives kill -9 and a torn last record.

A record is its length, the CRC of its bytes, and JSON. The first record that cannot be read whole
ends the file: it was never acknowledged.

Owns: the file. Must not: know what records mean.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

HEAD: Final = struct.Struct(">II")
RECORD_BYTES_MAX: Final = 4 << 20


class Spool:
    """An open journal; ``records`` are the records that were whole when the spool was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records, whole = read_records(path.read_bytes() if path.exists() else b"")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, whole)
        os.fsync(self._file)
        self.size = whole
        sync_folder(path.parent)

    def append(self, record: dict[str, Any]) -> None:
        """Write a record; it is on disk when this returns.

        Raises OSError if it cannot be written; then no part of it stays in the file.
        """
        data = framed(record)
        try:
            write_all(self._file, data)
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self.size)
            raise
        self.size += len(data)

    def replace(self, records: Iterable[dict[str, Any]]) -> None:
        """Replace all records by these, in one step."""
        fresh = self._path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        size = 0
        try:
            for record in records:
                data = framed(record)
                write_all(file, data)
                size += len(data)
            os.fsync(file)
        except OSError:
            os.close(file)
            fresh.unlink()
            raise
        fresh.rename(self._path)
        sync_folder(self._path.parent)
        os.close(self._file)
        os.close(file)
        self.size = size
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def write_all(file: int, data: bytes) -> None:
    """Write all bytes; OSError if the disk fills up on the way."""
    place = 0
    while place < len(data):
        place += os.write(file, data[place:])


def framed(record: dict[str, Any]) -> bytes:
    """The bytes of a record in the file."""
    body = msgspec.json.encode(record)
    if len(body) > RECORD_BYTES_MAX:
        raise ValueError(f"a record of {len(body)} bytes is too long")
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def read_records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The records that are whole, and the number of their bytes."""
    records: list[dict[str, Any]] = []
    place = 0
    while place + HEAD.size <= len(data):
        length, crc = HEAD.unpack_from(data, place)
        body = data[place + HEAD.size : place + HEAD.size + length]
        # A disk that lost power may leave zeros, which would be an empty record with a right CRC.
        if not length or len(body) < length or zlib.crc32(body) != crc:
            break
        records.append(msgspec.json.decode(body, type=dict[str, Any]))
        place += HEAD.size + length
    return records, place


def sync_folder(folder: Path) -> None:
    """Make new and changed names in a folder durable."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(number)
    os.close(number)
