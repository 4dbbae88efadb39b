"""Repairing the clock of an org that stood ahead of the database's, as an administrative act.

Owns: the act, with old and new values in the audit log.
Must not: decide on the changes (core does), or use a clock that this server knows to be wrong.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpucredits.core import ids
from gpucredits.core.bounds import CLOCK_JUMP_US
from gpucredits.core.clock_repair import ClockRepair
from gpucredits.core.money import format_credits
from gpucredits.core.rules.credit import clock_repairs as rules
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.book.database_clock import ClockCheck, steady_us
from gpucredits.store.clock import read_clock_and_offset
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.ledger import clock_repairs as store
from gpucredits.store.ledger.clock_repairs import OrgAhead
from gpucredits.wire.ledger.clock import ClockRepairAnswer, repair_to_wire
from gpucredits.wire.scalars import format_instant

State = dict[str, Any]


async def orgs_ahead(pool: Pool, *, after: str, limit: int) -> list[OrgAhead]:
    """Orgs whose clocks need a repair, by path."""
    return await store.orgs_ahead(pool, tolerance_us=CLOCK_JUMP_US, after=after, limit=limit)


async def repair_clock(
    pool: Pool, clock_check: ClockCheck, act: Act, reason: str
) -> tuple[ClockRepairAnswer, bool]:
    """Bring an org's clock back to now; the answer, and whether this key had done so before.

    Raises ClockJumped while the database's time is itself in doubt.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        asked_at = steady_us()
        now, offset_us = await read_clock_and_offset(db)
        clock_check.check(now, offset_us, asked_at)
        book, traces = await store.load(db, act.org_id, now)
        done = rules.repair(book, traces, now)
        if done is None:
            nothing = ClockRepair(book.org.path, book.org.clock, now)
            return msgspec.json.encode(repair_to_wire(act.org_id, nothing, repaired=False)), None
        done.left += await store.find_left(db, act.org_id, now)
        first_entry_id = book.org.next_entry_id - len(book.entries)
        await store.save(db, book, done)
        old, new = states(act.org_id, done, first_entry_id)
        note = act.note("clock.repair", done.org, old=old, new=new | {"reason": reason})
        return msgspec.json.encode(repair_to_wire(act.org_id, done)), note

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=ClockRepairAnswer), done.is_replay


def states(org_id: int, done: ClockRepair, first_entry_id: int) -> tuple[State, State]:
    """The audit log's old and new states: every stamp that moved."""
    old: State = {"clock": format_instant(done.clock), "expires_at": {}, "admitted_at": {}}
    new: State = {
        "clock": format_instant(done.now),
        "first_entry_id": ids.format_id(ids.ENTRY, org_id, first_entry_id),
        "expires_at": {},
        "admitted_at": {},
        "grants": {
            f"{ids.format_id(ids.GRANT, org_id, each.grant_id)} {each.mend.value}": format_credits(
                each.amount
            )
            for each in done.grants
        },
        "windows": [ids.format_id(ids.QUOTA, org_id, each) for each in done.windows],
        "rate_limits": [ids.format_id(ids.RATE_LIMIT, org_id, each) for each in done.rate_limits],
        "left": len(done.left),
    }
    for lease in done.leases:
        name = ids.format_id(ids.RESERVATION, org_id, lease.reservation_id)
        old["expires_at"][name] = format_instant(lease.expires_before)
        new["expires_at"][name] = format_instant(lease.expires_at)
        if lease.admitted_at != lease.admitted_before:
            old["admitted_at"][name] = format_instant(lease.admitted_before)
            new["admitted_at"][name] = format_instant(lease.admitted_at)
    return old, new
