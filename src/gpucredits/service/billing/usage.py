"""Measured use: stored durably and once, to be shown beside what was settled."""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.store.billing import usage_events
from gpucredits.store.billing.usage_events import Measured, UsageRow
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session
from gpucredits.store.reconciliation import unmatched_use
from gpucredits.store.reconciliation.unmatched_use import Recorded

__all__ = ["Measured", "Recorded", "UsageRow", "measured_use", "record_use"]


async def record_use(pool: Pool, rows: Sequence[UsageRow], *, dry_run: bool) -> Recorded:
    """Store reports: which were new, and which had no room in the queue of unmatched use."""
    if not rows:
        return Recorded(set(), set())
    async with session(pool) as db:
        transaction = db.transaction()
        await transaction.start()
        try:
            recorded = await unmatched_use.record(db, rows)
        except BaseException:
            await transaction.rollback()
            raise
        if dry_run:
            await transaction.rollback()
        else:
            await transaction.commit()
        return recorded


async def measured_use(pool: Pool, org_id: int, numbers: Sequence[int]) -> dict[int, Measured]:
    """What nodes measured for reservations of one org; unmeasured reservations are absent."""
    if not numbers:
        return {}
    async with session(pool) as db:
        return await usage_events.measured(db, org_id, numbers)
