"""Use without a lease: kept, and matched to a lease or dismissed by people."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpucredits.core import ids
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.write.acts import Act, ActRefused, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.billing.usage_events import UsageRow
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.reconciliation import comparisons, measured_use, unmatched_use
from gpucredits.store.reconciliation.unmatched_use import (
    DISMISSED,
    MATCHED,
    UNMATCHED,
    UnmatchedFilter,
    UnmatchedRow,
)

__all__ = ["UnmatchedFilter", "UnmatchedRow", "decide_unmatched", "keep_unknown", "list_unmatched"]

UNKNOWN = Refused(Reason.UNMATCHED_UNKNOWN, "There is no such unmatched use.")


async def keep_unknown(pool: Pool, rows: Sequence[UsageRow]) -> set[int]:
    """Store events of unknown leases; the positions of the events that had no room."""
    async with session(pool) as db, db.transaction():
        return (await unmatched_use.record(db, rows)).dropped


async def list_unmatched(pool: Pool, which: UnmatchedFilter) -> list[UnmatchedRow]:
    """Use without a lease, the newest first."""
    async with session(pool) as db:
        return await UNMATCHED.page(db, which, state=which.state)


async def decide_unmatched(
    pool: Pool, act: Act, number: int, *, reservation_id: int, note: str
) -> tuple[UnmatchedRow, bool]:
    """Match use to a lease, or (0) dismiss it; also whether this key had done so before.

    A row that was matched can be matched to another lease: both leases are compared again.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        row = await UNMATCHED.find(db, act.org_id, number)
        if row is None:
            raise ActRefused(UNKNOWN)
        if refused := await refusal_of(db, row, reservation_id):
            raise ActRefused(refused)
        state = MATCHED if reservation_id else DISMISSED
        decided = {"state": state, "reservation_id": reservation_id}
        await unmatched_use.decide(db, row, **decided, by=act.actor, note=note)
        for lease in {row.reservation_id, reservation_id} - {0}:
            await comparisons.make_due(db, act.org_id, lease)
        after = await UNMATCHED.find(db, act.org_id, number)
        action = "unmatched.match" if reservation_id else "unmatched.dismiss"
        text = ids.format_id(ids.UNMATCHED, act.org_id, number)
        new: dict[str, str] = {"note": note}
        if reservation_id:
            new["reservation_id"] = ids.format_id(ids.RESERVATION, act.org_id, reservation_id)
        return msgspec.json.encode(after), act.note(action, text, new=new)

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=UnmatchedRow), done.is_replay


async def refusal_of(db: Connection, row: UnmatchedRow, reservation_id: int) -> Refused | None:
    """The refusal if the use cannot be matched to a lease, or dismissed."""
    if row.state == DISMISSED:
        return Refused(Reason.UNMATCHED_STATE, "The use was dismissed.")
    if not reservation_id:
        return None
    lease = await measured_use.read_lease(db, row.org_id, reservation_id)
    if lease is None:
        return Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation in the same org.")
    if row.account and lease.account != row.account:
        return Refused(
            Reason.UNMATCHED_STATE,
            f"The use is of {row.account}, and the reservation is of {lease.account}.",
        )
    return None
