"""Measured use: stored durably and once, to be shown beside what was settled."""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.store.billing import usage_events
from gpucredits.store.billing.usage_events import Measured, UsageRow
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session

__all__ = ["Measured", "UsageRow", "measured_use", "record_use"]


async def record_use(pool: Pool, rows: Sequence[UsageRow], *, dry_run: bool) -> set[int]:
    """Store reports; the positions of those that were new."""
    if not rows:
        return set()
    async with session(pool) as db:
        transaction = db.transaction()
        await transaction.start()
        try:
            stored = await usage_events.insert(db, rows)
        except BaseException:
            await transaction.rollback()
            raise
        if dry_run:
            await transaction.rollback()
        else:
            await transaction.commit()
        return stored


async def measured_use(pool: Pool, org_id: int, numbers: Sequence[int]) -> dict[int, Measured]:
    """What was measured for reservations of one org; those of which nothing was are absent."""
    if not numbers:
        return {}
    async with session(pool) as db:
        return await usage_events.measured(db, org_id, numbers)
