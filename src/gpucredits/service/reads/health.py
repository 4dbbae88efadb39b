"""Whether work is moving: the database answers with the right time, and writes get through.

No write may wait for long either. Writes that fail while others get through are an alarm.

Must not: write anything, or take the word of a process that merely exists.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, Literal

from gpucredits.core.duration import format_ms
from gpucredits.metering.standing import PipelineStanding, ReadersStanding
from gpucredits.service.limits.limiter import LimiterHealth
from gpucredits.service.reconciliation.passes import ReconcilerCounts
from gpucredits.service.write.batch_worker import REMEMBERED_S
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
        return "stalled", f"a write has waited for {format_ms(int(waited * 10) * 100)}"
    return "ok", ""


def alarms_of(limits: LimiterHealth, ledger: Ledger) -> list[tuple[str, str, int]]:
    """(name, what is wrong, how often) of what somebody should look at while work moves on."""
    found = []
    progress, orgs_ahead = ledger.progress, ledger.cache.clock_check.orgs_ahead
    if progress.is_in_doubt:
        why = f"writes fail, the last one because {progress.cause}"
        found.append(("writes_fail", why, progress.failed_total + progress.turned_away_total))
    queues = (ledger.commands, ledger.heartbeats)
    if max(each.turned_away_at for each in queues) >= time.monotonic() - REMEMBERED_S:
        why = "more is asked of an org than its queue takes: writes are turned away with busy"
        found.append(("queue_full", why, sum(each.turned_away_total for each in queues)))
    if limits.is_alone:
        why = "Redis does not answer: each server counts requests alone, and gives the whole limit"
        found.append(("request_limits_alone", why, limits.passed_alone + limits.let_through))
    if orgs_ahead:
        why = "the clocks of orgs are ahead of the database's: gpucredits clock status"
        found.append(("org_clocks_ahead", why, orgs_ahead))
    return found


def metering_alarms(standing: PipelineStanding) -> list[tuple[str, str, int]]:
    """The same of the metering pipeline: work that does not move, and messages put aside."""
    found = []
    behind = standing.usage.lag + standing.events.lag
    if standing.state == "away":
        why = f"the bus cannot be used: {standing.trouble}"
        found.append(("metering_bus_away", why, 1))
    elif standing.state == "stalled":
        stalled_s = max(standing.usage.stalled_s(), standing.events.stalled_s())
        why = f"messages wait, and none has moved for {format_ms(int(stalled_s) * 1_000)}"
        found.append(("metering_stalled", why, behind))
    if standing.dead_letters:
        why = "messages could not be used: gpucredits dead-letter list"
        found.append(("dead_letters_waiting", why, standing.dead_letters))
    if standing.lost:
        why = "the bus dropped messages before they were read: nodes must report again"
        found.append(("metering_messages_lost", why, standing.lost))
    return found


def readers_alarm(standing: ReadersStanding) -> list[tuple[str, str, int]]:
    """The alarm that readers of events have stopped, and the outbox grows for them."""
    if not standing.stuck:
        return []
    why = "readers leave old events waiting, which fill the disk: gpucredits event consumers"
    return [("event_readers_stuck", why, standing.stuck)]


def drift_alarm(counts: ReconcilerCounts | None) -> list[tuple[str, str, int]]:
    """The alarm that bills have drifted from what nodes measured, while somebody should look."""
    if counts is None or not counts.open_alarms:
        return []
    why = "bills have drifted from what nodes measured: gpucredits reconcile alarms"
    return [("drift", why, counts.open_alarms)]
