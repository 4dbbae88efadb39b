"""What a dump says, in columns and in one canonical order.

Owns the shape that every version of the format is read into. Must not know bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Grants:
    """Grants by start, then expiration, then arrival."""

    starts: list[int] = field(default_factory=list)
    expirations: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)


@dataclass(slots=True)
class Charges:
    """Accepted charges by timestamp, then arrival; a name may be absent."""

    times: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)


@dataclass(slots=True)
class Refunds:
    """Refunds by timestamp, then charge name, then amount; `charges` are rows of Charges."""

    times: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    charges: list[int] = field(default_factory=list)


@dataclass(slots=True)
class PendingRefunds:
    """Refunds whose charge has not arrived, in the same order, with the name they wait for."""

    times: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)


@dataclass(slots=True)
class History:
    """One tracker's recorded events."""

    grants: Grants = field(default_factory=Grants)
    charges: Charges = field(default_factory=Charges)
    refunds: Refunds = field(default_factory=Refunds)
    waiting: PendingRefunds = field(default_factory=PendingRefunds)
