"""A writer of dump version 1, which the package only reads; made from the format's description."""

import struct
import zlib
from typing import Any


def version1(grants: list[Any], charges: list[Any], refunds: list[Any]) -> Any:
    """Rows: (start, expiration, amount, id), (time, amount, id or None), (time, amount, id)."""
    parts = [b"GPUCRED\n", struct.pack("<HIII", 1, len(grants), len(charges), len(refunds))]
    for start, expiration, amount, name in grants:
        text = name.encode()
        parts += [struct.pack("<qqqH", start, expiration, amount, len(text)), text]
    for time, amount, name in charges:
        text = (name or "").encode()
        parts += [struct.pack("<qqBH", time, amount, name is not None, len(text)), text]
    for time, amount, name in refunds:
        text = name.encode()
        parts += [struct.pack("<qqH", time, amount, len(text)), text]
    data = b"".join(parts)
    return data + struct.pack("<I", zlib.crc32(data))
