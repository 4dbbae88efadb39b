"""Whether work is moving: the database answers with the right time, and writes get through.

No write may wait for long either.

Must not: write anything, or take the word of a process that merely exists.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from gpucredits.core.duration import format_ms
from gpucredits.service.limits.limiter import LimiterHealth
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.clock import read_clock
from gpucredits.store.database.errors import Conflict, Unavailable

STALLED_S: Final = 5.0
PROBE_TIMEOUT_S: Final = 3.0

Verdict = tuple[Literal["ok", "stalled", "unavailable", "clock_jumped"], str]


async def check_health(ledger: Ledger) -> Verdict:
    """The verdict, and why."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            await read_clock(ledger.pool)
    except (Unavailable, Conflict, TimeoutError) as error:
        return "unavailable", f"the database does not answer: {str(error) or 'too slow'}"
    if ledger.cache.clock_check.off_us:
        return "clock_jumped", ledger.cache.clock_check.explanation
    if trouble := ledger.progress.trouble:
        return "unavailable", trouble
    now = asyncio.get_running_loop().time()
    waited = max(ledger.commands.longest_wait(now), ledger.heartbeats.longest_wait(now))
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
