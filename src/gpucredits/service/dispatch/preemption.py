"""Orders to stop that a pool gives to leases, and takes back.

Owns: telling the ledger. An order that could not be given is given again by the next cycle.
Must not: choose whose work stops (core.fairshare does).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from gpucredits.core import ids
from gpucredits.core.command import ResumeLease, StopLease
from gpucredits.core.fairshare.decisions import Preemption
from gpucredits.service.dispatch.ledger_calls import Asking
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.dispatch.pool_rows import Drain


def spared(drains: Iterable[Drain], orders: Sequence[Preemption]) -> list[Drain]:
    """Leases that nobody needs to stop any more, and that are not stopped for somebody else."""
    stopped = {ids.parse_id(ids.RESERVATION, row.job_id) for row in orders}
    return [row for row in drains if (row.org_id, row.reservation_id) not in stopped]


class StopOrders:
    """Tells leases to stop, or to go on after all."""

    def __init__(self, ledger: Ledger, asking: Asking) -> None:
        self._ledger = ledger
        self._asking = asking

    async def stop(self, pool: str, orders: Sequence[Preemption], *, grace_ms: int) -> None:
        """Shorten leases to their grace, each for the request that needs its room."""

        async def stop(row: Preemption) -> None:
            org_id, number = ids.parse_id(ids.RESERVATION, row.job_id)
            _, waiter = ids.parse_id(ids.QUEUE, row.for_request)
            order = StopLease(reservation_id=number, grace_ms=grace_ms, stopping_for=waiter)
            request = Request(order, actor=f"pool {pool}")
            await self._asking.done(
                org_id, "an order to stop", lambda: self._ledger.submit(org_id, request)
            )

        await asyncio.gather(*(stop(row) for row in orders))

    async def resume(self, pool: str, drains: Sequence[Drain]) -> None:
        """Let leases go on whose room is no longer needed."""

        async def resume(row: Drain) -> None:
            back = ResumeLease(reservation_id=row.reservation_id, stopping_for=row.stopping_for)
            request = Request(back, actor=f"pool {pool}")
            await self._asking.done(
                row.org_id, "an order taken back", lambda: self._ledger.submit(row.org_id, request)
            )

        await asyncio.gather(*(resume(row) for row in drains))
