"""Moving a test server's clock, as an administrative act.

Must not: be reachable on a server that was started without a test clock (its route is not there).
"""

from __future__ import annotations

import msgspec

from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.clock import advance_clock
from gpucredits.store.database.connection import Connection, Pool


async def move_clock(pool: Pool, act: Act, step_us: int) -> int:
    """Move time on by so many microseconds; the new offset."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        after = await advance_clock(db, step_us, actor=act.actor, request_id=act.request_id)
        return msgspec.json.encode(after), None

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=int)
