"""Bounds on connections, and how many there are: counts that all connections of a server share.

Must not: close a connection; whoever has one does.
"""

from __future__ import annotations

import resource
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

CONNECTIONS_MAX: Final = 10_000
PER_ADDRESS_MAX: Final = 4_000
FILES_KEPT_FREE: Final = 200  # for the database, logs and whatever else is opened


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBounds:
    """How much, how many and how long."""

    head_bytes: int = 16 * 1024
    target_bytes: int = 8 * 1024
    headers: int = 64
    framing_bytes: int = 1024 * 1024  # of a body's chunks: their sizes and extensions
    waiting_requests: int = 16  # sent ahead on one connection
    head_s: float = 10.0
    idle_s: float = 75.0
    unread_s: float = 30.0
    rest_bytes: int = 16 * 1024 * 1024  # of a body that was answered before it was whole
    rest_s: float = 10.0
    connections: int = CONNECTIONS_MAX
    per_address: int = PER_ADDRESS_MAX
    handshakes: int = 1_000  # of TLS, under way at once
    handshake_s: float = 10.0
    goodbye_s: float = 5.0  # of TLS, when a connection ends


@dataclass(slots=True)
class Connected:
    """Who is connected: counts that all connections of a server share."""

    in_all: int = 0
    by_address: Counter[str] = field(default_factory=Counter)
    turned_away: int = 0
    handshakes: int = 0

    def too_many(self, bounds: ConnectionBounds, address: str) -> str:
        """Why one more connection from an address is one too many; empty if it is not."""
        if self.in_all >= bounds.connections:
            return f"The server has {bounds.connections} connections, which is its limit."
        if self.by_address[address] >= bounds.per_address:
            return f"Your address has {bounds.per_address} connections, which is its limit."
        return ""

    def enter(self, address: str) -> None:
        """Count a connection."""
        self.in_all += 1
        self.by_address[address] += 1

    def leave(self, address: str) -> None:
        """Forget a connection."""
        self.in_all -= 1
        left = self.by_address[address] - 1
        if left:
            self.by_address[address] = left
        else:
            del self.by_address[address]


def connections_that_fit(asked: int = CONNECTIONS_MAX) -> int:
    """How many connections the process may have open: as asked, or as its open files allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = asked + FILES_KEPT_FREE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return asked
    return max(min(asked, soft - FILES_KEPT_FREE), 1)
