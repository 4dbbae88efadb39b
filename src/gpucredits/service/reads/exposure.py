"""The exposure of accounts, read for the edge."""

from __future__ import annotations

from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session
from gpucredits.store.ledger.exposure import ExposureFilter, PayerExposure, read_exposure

__all__ = ["ExposureFilter", "PayerExposure", "exposure_of_payers"]


async def exposure_of_payers(
    pool: Pool, org_id: int | None, wanted: ExposureFilter
) -> tuple[int, PayerExposure, list[PayerExposure]]:
    """The time, the exposure of all payers in scope, and a page of them by path."""
    async with session(pool) as db:
        return await read_exposure(db, org_id, wanted)
