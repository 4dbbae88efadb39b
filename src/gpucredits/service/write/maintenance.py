"""Announcing and ending planned stops as administrative acts, and listing uncovered leases.

Owns: one announcement at a time; a new one ends the one before.
Must not: extend leases (their next reports do).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from gpucredits.core import ids
from gpucredits.core.bounds import NEVER_US
from gpucredits.core.money import format_credits
from gpucredits.service.write.acts import Act, perform
from gpucredits.store import maintenance as store
from gpucredits.store.access import audit
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.maintenance import Coverage, Maintenance, ShortLease
from gpucredits.wire.outages.maintenance import MaintenanceAnswer, ShortLeaseAnswer
from gpucredits.wire.scalars import format_instant

FIRST: Final = (0, 0)
SHOWN_AT_ONCE: Final = 100
NO_STOP: Final = Maintenance(0, NEVER_US, 0, "", 0)


class MaintenanceState(NamedTuple):
    """The announced stop, the counts of leases, and a page of leases that end too early."""

    stop: Maintenance | None
    coverage: Coverage
    short: list[ShortLease]


async def change(pool: Pool, act: Act, for_ms: int, reason: str) -> tuple[MaintenanceAnswer, bool]:
    """Announce a stop of some milliseconds; 0 ends the announced stop.

    Returns the state then, and whether this key had done so before.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        notes = []
        ended_until = None
        for stop in await store.open_maintenances(db):
            ended = await store.end(db, stop.maintenance_id)
            new = {"ended_at": format_instant(ended.ended_at)}
            notes.append(act.note("maintenance.end", name_of(stop), old=told(stop), new=new))
            ended_until = format_instant(stop.until)
        if for_ms:
            stop = await store.announce(db, for_ms, reason)
            notes.append(act.note("maintenance.announce", name_of(stop), new=told(stop)))
        await audit.insert(db, act.org_id, notes)
        answer = state_to_wire(await state_of(db, FIRST, SHOWN_AT_ONCE))
        answer.ended_until = ended_until
        return msgspec.json.encode(answer), None

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=MaintenanceAnswer), done.is_replay


async def read_state(pool: Pool, after: tuple[int, int], limit: int) -> MaintenanceState:
    """The announced stop, and a page of the leases that end before it does."""
    async with session(pool) as db:
        return await state_of(db, after, limit)


async def state_of(db: Connection, after: tuple[int, int], limit: int) -> MaintenanceState:
    """The same within a transaction."""
    stops = await store.open_maintenances(db)
    if not stops:
        live = (await store.coverage_of(db, NO_STOP)).live
        return MaintenanceState(None, Coverage(live, 0, 0, 0), [])
    stop = stops[-1]
    coverage = await store.coverage_of(db, stop)
    return MaintenanceState(stop, coverage, await store.short_leases(db, stop, after, limit))


def state_to_wire(state: MaintenanceState) -> MaintenanceAnswer:
    """The state as it is shown."""
    stop, coverage, short = state
    return MaintenanceAnswer(
        state="none" if stop is None else "announced",
        **coverage._asdict(),
        announced_at=None if stop is None else format_instant(stop.announced_at),
        until=None if stop is None else format_instant(stop.until),
        reason="" if stop is None else stop.reason,
        leases=[
            ShortLeaseAnswer(
                reservation_id=ids.format_id(ids.RESERVATION, row.org_id, row.reservation_id),
                account=row.account,
                payer=row.payer,
                ends_at=format_instant(row.ends_at),
                missing=format_credits(row.missing),
            )
            for row in short
        ],
    )


def name_of(stop: Maintenance) -> str:
    """The name of a planned stop in the audit log."""
    return f"maintenance:{stop.maintenance_id}"


def told(stop: Maintenance) -> dict[str, str]:
    """A planned stop as the audit log shows it."""
    return {
        "announced_at": format_instant(stop.announced_at),
        "until": format_instant(stop.until),
        "reason": stop.reason,
    }
