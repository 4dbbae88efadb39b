"""Reading the audit log."""

from __future__ import annotations

from collections.abc import Iterable

from gpucredits.core import ids
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.store.access import audit
from gpucredits.store.access.audit import AuditFilter, AuditRow
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session

__all__ = ["AuditFilter", "AuditRow", "list_acts", "who_ended"]


async def list_acts(pool: Pool, which: AuditFilter, *, before: int, limit: int) -> list[AuditRow]:
    """Acts, the latest first."""
    async with session(pool) as db:
        return await audit.page(db, which, before=before, limit=limit)


async def who_ended(pool: Pool, org_id: int, leases: Iterable[Reservation]) -> dict[int, str]:
    """Who settled or canceled each of some leases of an org, by their numbers."""
    numbers = {
        ids.format_id(ids.RESERVATION, org_id, lease.reservation_id): lease.reservation_id
        for lease in leases
        if lease.state in (ReservationState.SETTLED, ReservationState.CANCELED)
    }
    if not numbers:
        return {}
    async with session(pool) as db:
        found = await audit.who_ended(db, org_id, list(numbers))
    return {numbers[resource]: actor for resource, actor in found.items()}
