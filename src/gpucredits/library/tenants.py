"""TenantCredits: many isolated trackers behind one object, and questions across all of them.

Owns the names and the container format. Must not let one tenant's history touch another's.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NoReturn

from gpucredits.library.arguments import ArgumentTypeError, check_integer, check_name
from gpucredits.library.credit_tracker import CreditTracker, IrreconcilableError
from gpucredits.library.dump import DumpError
from gpucredits.library.dump.reader import Reader

MAGIC = b"GPUTENA\n"
VERSION = 1
_CHECKSUM_BYTES = 32


class TenantCredits:
    """A tracker per tenant; a tenant exists from the first time it is asked for."""

    def __init__(self) -> None:
        self._trackers: dict[str, CreditTracker] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TenantCredits):
            return NotImplemented
        return self._trackers == other._trackers

    def __hash__(self) -> NoReturn:
        raise TypeError("a TenantCredits changes, so it has no hash")

    def tenant(self, name: str) -> CreditTracker:
        """The tracker of one tenant, made when first asked for."""
        tracker = self._trackers.get(check_name("name", name))
        if tracker is None:
            tracker = self._trackers[name] = CreditTracker()
        return tracker

    @property
    def names(self) -> list[str]:
        """The tenants, sorted."""
        return sorted(self._trackers)

    def get_balances(self, timestamp: int) -> dict[str, int]:
        """Balance of every tenant that reconciles at a timestamp; `irreconcilable` has the rest."""
        return self._survey(timestamp)[0]

    def irreconcilable(self, timestamp: int) -> dict[str, IrreconcilableError]:
        """The tenants whose history does not reconcile at a timestamp, and why."""
        return self._survey(timestamp)[1]

    def total(self, timestamp: int) -> int:
        """Credits of all tenants together at a timestamp.

        Raises the first tenant's IrreconcilableError, with its name as a note: a partial sum would
        pass for a whole one.
        """
        balances, broken = self._survey(timestamp)
        for name, error in broken.items():
            error.add_note(f"tenant {name!r}")
            raise error
        return sum(balances.values())

    def _survey(self, timestamp: int) -> tuple[dict[str, int], dict[str, IrreconcilableError]]:
        timestamp = check_integer("timestamp", timestamp)
        balances: dict[str, int] = {}
        broken: dict[str, IrreconcilableError] = {}
        for name in self.names:
            try:
                balances[name] = self._trackers[name].get_balance(timestamp)
            except IrreconcilableError as error:
                broken[name] = error
        return balances, broken

    def dump(self) -> bytes:
        """All tenants as bytes; equal histories give equal bytes."""
        parts = [MAGIC, struct.pack("<HQ", VERSION, len(self._trackers))]
        for name in self.names:
            text = name.encode("utf-8", "surrogatepass")
            content = self._trackers[name].dump()
            parts += [struct.pack("<QQ", len(text), len(content)), text, content]
        data = b"".join(parts)
        return data + hashlib.sha256(data).digest()

    @classmethod
    def load(cls, data: bytes) -> TenantCredits:
        """The tenants that `dump` wrote; raises DumpError naming what is wrong, and whose."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError("data", f"must be bytes, not {type(data).__name__}")
        data = bytes(data)
        stop = max(0, len(data) - _CHECKSUM_BYTES)
        reader = Reader(data, 0, stop)
        if bytes(reader.take(len(MAGIC), "the magic")) != MAGIC:
            raise DumpError(f"not a dump of tenants: it does not begin with {MAGIC!r}")
        version, count = reader.unpack("HQ", "the header")
        if version != VERSION:
            raise DumpError(f"version {version} of a dump of tenants is unknown; {VERSION} is")
        if hashlib.sha256(data[:stop]).digest() != data[stop:]:
            raise DumpError("truncated or corrupt: the checksum does not match the content")
        tenants = cls()
        for _ in range(count):
            name_size, size = reader.unpack("QQ", "a tenant")
            name = reader.text(name_size, "a tenant name")
            if name in tenants._trackers:
                raise DumpError(f"tenant {name!r} comes twice")
            content = bytes(reader.take(size, f"tenant {name!r}"))
            try:
                tenants._trackers[name] = CreditTracker.load(content)
            except DumpError as error:
                raise DumpError(f"tenant {name!r}: {error}") from None
        reader.finish("the last tenant")
        return tenants
