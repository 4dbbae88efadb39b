"""Whether our books hold after a run: every rule that ``gpucredits verify`` checks."""

from __future__ import annotations

from gpucredits.service.reads.verify import Verification
from gpucredits.service.reads.verify import verify as verify_ledger
from gpucredits.store.database.connections import PoolOptions, open_pool

PATIENT = PoolOptions(statement_timeout_ms=3_600_000, command_timeout_s=3_605.0)


async def verify(url: str) -> Verification:
    """Check every rule on the benched database."""
    pool = await open_pool(url, PATIENT)
    try:
        return await verify_ledger(pool)
    finally:
        await pool.close()
