"""Reading the audit log."""

from __future__ import annotations

from gpucredits.store import audit
from gpucredits.store.audit import AuditFilter, AuditRow
from gpucredits.store.connection import Pool
from gpucredits.store.errors import driver_errors

__all__ = ["AuditFilter", "AuditRow", "list_acts"]


async def list_acts(pool: Pool, which: AuditFilter, *, before: int, limit: int) -> list[AuditRow]:
    """Acts, the latest first."""
    with driver_errors():
        async with pool.acquire() as db:
            return await audit.page(db, which, before=before, limit=limit)
