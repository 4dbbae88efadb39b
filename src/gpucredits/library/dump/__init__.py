"""A history as bytes: versioned, deterministic, checksummed.

Owns what every version begins with and which reader takes over. Must not replay anything.
"""

from __future__ import annotations

import struct

from gpucredits.library.dump import version1, version2
from gpucredits.library.dump.history import Charges, Grants, History, PendingRefunds, Refunds
from gpucredits.library.dump.reader import DumpError, Reader

__all__ = [
    "MAGIC",
    "Charges",
    "DumpError",
    "Grants",
    "History",
    "PendingRefunds",
    "Refunds",
    "read_history",
    "write_history",
]

MAGIC = b"GPUCRED\n"


def write_history(history: History) -> bytes:
    """The bytes of a history; equal histories give equal bytes."""
    return version2.write_body(history, MAGIC + struct.pack("<H", version2.VERSION))


def read_history(data: bytes) -> History:
    """Read a dump of any known version, or raise DumpError naming what is wrong."""
    reader = Reader(data, 0, len(data))
    magic = bytes(reader.take(min(len(MAGIC), len(data)), "the magic"))
    if not MAGIC.startswith(magic) or not data:
        raise DumpError(f"not a dump: it begins with {magic!r}, not {MAGIC!r}")
    start = len(MAGIC) + 2
    if len(data) < start:
        raise DumpError(f"truncated: {len(data)} bytes, and the header alone needs {start}")
    (version,) = reader.unpack("H", "the version")
    if version == version2.VERSION:
        return version2.read_body(data, start)
    if version == version1.VERSION:
        return version1.read_body(data, start)
    known = f"{version1.VERSION} to {version2.VERSION}"
    if version > version2.VERSION:
        raise DumpError(f"version {version} is newer than this library, which reads {known}")
    raise DumpError(f"version {version} is unknown; this library reads {known}")
