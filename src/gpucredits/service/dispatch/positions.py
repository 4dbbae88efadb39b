"""What those who wait are told of their places: only news, and in a long queue by turns.

Owns: which rows one cycle writes down.
Must not: decide, or write them (store.dispatch does).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpucredits.core.fairshare.decisions import WaitDecision
from gpucredits.store.dispatch.cycle import QueuePosition
from gpucredits.store.dispatch.pool_rows import OpenTicket

PLACES_MAX: Final = 2_000  # rows that are written in one cycle
MOVED_US: Final = 2_000_000  # an estimate that moved by less is not news


class Placing:
    """Chooses, and remembers for each pool up to which place the last cycle has written."""

    def __init__(self) -> None:
        self._told_to: dict[int, int] = {}

    def news(
        self, pool_id: int, rows: Iterable[tuple[OpenTicket, WaitDecision]]
    ) -> list[QueuePosition]:
        """What is to be written now: who was told nothing yet, then on from the last cycle's."""
        told_to = self._told_to.get(pool_id, 0)
        found = [
            ((bool(ticket.reason), place.position <= told_to, place.position), place)
            for ticket, row in rows
            if (place := _place(ticket, row)) is not None
        ]
        if len(found) <= PLACES_MAX:
            self._told_to.pop(pool_id, None)
            return [place for _, place in found]
        chosen = sorted(found)[:PLACES_MAX]
        (was_told, *_), last = chosen[-1]
        if was_told:
            self._told_to[pool_id] = last.position
        return [place for _, place in chosen]


def _place(ticket: OpenTicket, row: WaitDecision) -> QueuePosition | None:
    """What a request is told now; None when that is what it was told before."""
    starts_at = row.starts_at or 0
    said = (ticket.position, ticket.reason, ticket.needed, ticket.available, ticket.behind)
    says = (row.position, row.reason.value, row.needed, row.available, row.behind)
    if said == says and abs(starts_at - ticket.starts_at) < MOVED_US:
        return None
    return QueuePosition(
        *ticket.key,
        row.position,
        row.reason.value,
        row.resource,
        row.needed,
        row.available,
        row.behind,
        starts_at,
    )
