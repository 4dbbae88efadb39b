"""What a server measures of itself, for whoever watches it.

Owns: which metrics there are.
Must not: name tenants, or wait for a database that does not answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

from gpucredits.service.health import PROBE_TIMEOUT_S, check_health, longest_wait
from gpucredits.service.services import Services
from gpucredits.store.errors import Conflict, Unavailable
from gpucredits.store.queue import depth
from gpucredits.version import __version__
from gpucredits.wire.metrics import Metric, Sample, number

STATUSES: Final = ("ok", "stalled", "unavailable", "clock_jumped")


async def measure(services: Services) -> list[Metric]:
    """Every metric of this server, now."""
    status, _ = await check_health(services.pool, services.ledger.funnel)
    return [
        Metric(
            "gpucredits_build_info",
            "gauge",
            "The version of this server.",
            ((__version__, 1),),
            "version",
        ),
        Metric(
            "gpucredits_health",
            "gauge",
            "1 for the status that /healthz tells, 0 for the others.",
            tuple((each, int(each == status)) for each in STATUSES),
            "status",
        ),
        *clock_metrics(services),
        *write_metrics(services),
        *request_metrics(services),
        *await database_metrics(services, is_away=status == "unavailable"),
    ]


def clock_metrics(services: Services) -> list[Metric]:
    """The database's clock beside this machine's, and orgs that a wrong one has left ahead."""
    steadiness = services.ledger.funnel.shelf.steadiness
    return [
        number(
            "gpucredits_clock_off_seconds",
            "gauge",
            "By how much the database's clock is off; 0 while it is steady.",
            steadiness.off_us / 1_000_000,
        ),
        number(
            "gpucredits_clock_jumps_total",
            "counter",
            "How often the database's clock has jumped.",
            steadiness.jumps,
        ),
        number(
            "gpucredits_orgs_clock_ahead",
            "gauge",
            "Orgs whose clock is ahead of the database's and needs a repair.",
            steadiness.orgs_ahead,
        ),
    ]


def write_metrics(services: Services) -> list[Metric]:
    """Batches that were saved or not, and what waits to be."""
    funnel = services.ledger.funnel
    progress = funnel.progress
    lanes = (("commands", funnel.commands), ("heartbeats", funnel.beats))
    now = asyncio.get_running_loop().time()
    return [
        Metric(
            "gpucredits_batches_total",
            "counter",
            "Batches of writes by what came of them.",
            (("saved", progress.saved_total), ("failed", progress.failed_total)),
            "result",
        ),
        number(
            "gpucredits_batches_failing",
            "gauge",
            "Batches that failed since the last one that was saved.",
            progress.failures,
        ),
        Metric(
            "gpucredits_writes_waiting",
            "gauge",
            "Commands and heartbeats that wait to be carried out.",
            tuple((name, lane.waiting.waiting) for name, lane in lanes),
            "lane",
        ),
        Metric(
            "gpucredits_writes_waiting_seconds",
            "gauge",
            "How long the first of them has waited.",
            tuple((name, round(longest_wait(lane, now), 3)) for name, lane in lanes),
            "lane",
        ),
    ]


def request_metrics(services: Services) -> list[Metric]:
    """Requests by status, and what passed without the shared count of requests."""
    counts, limits = services.counts, services.limiter.health
    passed: tuple[Sample, ...] = (
        ("alone", limits.passed_alone),
        ("let_through", limits.let_through),
    )
    return [
        Metric(
            "gpucredits_requests_total",
            "counter",
            "Requests by the class of their status.",
            tuple(counts.by_class().items()),
            "class",
        ),
        Metric(
            "gpucredits_requests_refused_total",
            "counter",
            "Requests without a live key, forbidden, too many, or not served now.",
            tuple(counts.refused().items()),
            "status",
        ),
        number(
            "gpucredits_request_limits_alone",
            "gauge",
            "1 while this server counts requests without Redis, which does not answer.",
            int(limits.is_alone),
        ),
        Metric(
            "gpucredits_requests_uncounted_total",
            "counter",
            "Requests that passed by this server's own count, or by none.",
            passed,
            "how",
        ),
    ]


async def database_metrics(services: Services, *, is_away: bool) -> list[Metric]:
    """Whether the database answers, which primary it is, and how many requests wait for pools."""
    found = [
        number(
            "gpucredits_database_timeline",
            "gauge",
            "The timeline of the newest primary that was seen; each promotion begins another.",
            services.primary.timeline,
        )
    ]
    waiting = None if is_away else await _waiting_for_pools(services)
    if waiting is not None:
        meaning = "Requests that wait for room in a pool."
        found.append(number("gpucredits_queue_depth", "gauge", meaning, waiting))
    meaning = "1 while the database answers."
    found.append(number("gpucredits_database_up", "gauge", meaning, int(waiting is not None)))
    return found


async def _waiting_for_pools(services: Services) -> int | None:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            return await depth(services.pool)
    except (Unavailable, Conflict, TimeoutError):
        return None
