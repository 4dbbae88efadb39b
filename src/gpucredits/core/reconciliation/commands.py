"""Commands of the reconciler; ``core.command`` has those of the rest of the ledger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """Bring what an ended reservation was charged in line with what its nodes measured.

    ``spans`` lists (start, end) of the measured use, in milliseconds since admission.
    """

    reservation_id: int
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundLostWork:
    """Give back what a job used after its last checkpoint, at most ``limit_ms`` of it."""

    reservation_id: int
    checkpoint_ms: int
    limit_ms: int
