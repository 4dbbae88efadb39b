"""Whether work is moving: the database answers with the right time, and writes get through.

Nothing may wait in the funnel for long either.

Must not: write anything, or take the word of a process that merely exists.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from gpucredits.core.duration import format_ms
from gpucredits.service.funnel import Funnel
from gpucredits.service.lane import Lane
from gpucredits.service.limiter import LimiterHealth
from gpucredits.store.clock import read_clock
from gpucredits.store.connection import Pool
from gpucredits.store.errors import Conflict, Unavailable

STALLED_S: Final = 5.0
PROBE_TIMEOUT_S: Final = 3.0

Verdict = tuple[Literal["ok", "stalled", "unavailable", "clock_jumped"], str]


async def check_health(pool: Pool, funnel: Funnel) -> Verdict:
    """The verdict, and why."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            await read_clock(pool)
    except (Unavailable, Conflict, TimeoutError) as error:
        return "unavailable", f"the database does not answer: {str(error) or 'too slow'}"
    if funnel.shelf.steadiness.off_us:
        return "clock_jumped", funnel.shelf.steadiness.explanation
    if trouble := funnel.progress.trouble:
        return "unavailable", trouble
    now = asyncio.get_running_loop().time()
    waited = max((longest_wait(lane, now) for lane in funnel.lanes), default=0.0)
    if waited > STALLED_S:
        return "stalled", f"a command has waited for {format_ms(int(waited * 10) * 100)}"
    return "ok", ""


def alarms_of(limits: LimiterHealth, orgs_ahead: int) -> list[tuple[str, str, int]]:
    """(name, what is wrong, how often) of what somebody should look at while work moves on."""
    found = []
    if limits.is_alone:
        why = "Redis does not answer: each server counts requests alone, and gives the whole limit"
        found.append(("request_limits_alone", why, limits.passed_alone + limits.let_through))
    if orgs_ahead:
        why = "the clocks of orgs are ahead of the database's: gpucredits clock status"
        found.append(("org_clocks_ahead", why, orgs_ahead))
    return found


def longest_wait(lane: Lane, now: float) -> float:
    """How long the first in any of a lane's queues has waited."""
    waits = [now - queue.jobs[0].queued_at for queue in lane.waiting.queues.values() if queue.jobs]
    return max(waits, default=0.0)
