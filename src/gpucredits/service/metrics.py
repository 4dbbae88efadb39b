"""What a server measures of itself, for whoever watches it.

Owns: which metrics there are.
Must not: name tenants, or wait for a database that does not answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

from gpucredits.service.reads.health import PROBE_TIMEOUT_S, check_health
from gpucredits.service.services import Services
from gpucredits.store.database.errors import Conflict, Unavailable
from gpucredits.store.dispatch.queue import depth
from gpucredits.version import __version__
from gpucredits.wire.metrics import Metric, Sample, number

STATUSES: Final = ("ok", "stalled", "unavailable", "clock_jumped")


async def measure(services: Services) -> list[Metric]:
    """Every metric of this server, now."""
    status, _ = await check_health(services.ledger)
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
        *metering_metrics(services),
        number(
            "gpucredits_event_readers_stuck",
            "gauge",
            "Readers of events that leave old ones waiting, so that the outbox grows.",
            services.event_readers.stuck,
        ),
        *reconciler_metrics(services),
        *await database_metrics(services, is_away=status == "unavailable"),
    ]


def clock_metrics(services: Services) -> list[Metric]:
    """The database's clock beside this machine's, and orgs that a wrong one has left ahead."""
    clock_check = services.ledger.cache.clock_check
    return [
        number(
            "gpucredits_clock_off_seconds",
            "gauge",
            "By how much the database's clock is off; 0 while it is steady.",
            clock_check.off_us / 1_000_000,
        ),
        number(
            "gpucredits_clock_jumps_total",
            "counter",
            "How often the database's clock has jumped.",
            clock_check.jumps,
        ),
        number(
            "gpucredits_orgs_clock_ahead",
            "gauge",
            "Orgs whose clock is ahead of the database's and needs a repair.",
            clock_check.orgs_ahead,
        ),
    ]


def write_metrics(services: Services) -> list[Metric]:
    """Batches that were saved or not, and what waits to be."""
    ledger = services.ledger
    progress = ledger.progress
    queues = (("commands", ledger.commands), ("heartbeats", ledger.heartbeats))
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
            "gpucredits_writes_turned_away_total",
            "counter",
            "Writes that never were part of a batch: the database failed, or a queue was full.",
            (
                ("unavailable", progress.turned_away_total),
                ("busy", sum(queue.turned_away_total for _, queue in queues)),
            ),
            "reason",
        ),
        Metric(
            "gpucredits_writes_waiting",
            "gauge",
            "Commands and heartbeats that wait to be carried out.",
            tuple((name, queue.waiting) for name, queue in queues),
            "lane",
        ),
        Metric(
            "gpucredits_writes_waiting_seconds",
            "gauge",
            "How long the first of them has waited, or the first batch has been under way.",
            tuple((name, round(queue.longest_wait(now), 3)) for name, queue in queues),
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


def metering_metrics(services: Services) -> list[Metric]:
    """What is behind in the pipeline of a server with a bus, and since when nothing moved."""
    if services.pipeline is None:
        return []
    standing = services.pipeline.standing
    topics = (("usage", standing.usage), ("events", standing.events))
    return [
        number(
            "gpucredits_metering_bus_up",
            "gauge",
            "1 while the bus can be used.",
            int(not standing.trouble),
        ),
        Metric(
            "gpucredits_metering_behind",
            "gauge",
            "Messages of measured use that are not stored, and events that are not on the bus.",
            tuple((name, topic.lag) for name, topic in topics),
            "topic",
        ),
        Metric(
            "gpucredits_metering_stalled_seconds",
            "gauge",
            "For how long there was work and nothing moved.",
            tuple((name, round(topic.stalled_s(), 3)) for name, topic in topics),
            "topic",
        ),
        number(
            "gpucredits_metering_messages_lost_total",
            "counter",
            "Messages that the bus dropped before they were read.",
            standing.lost,
        ),
        number(
            "gpucredits_dead_letters",
            "gauge",
            "Messages that could not be used and wait for a decision.",
            standing.dead_letters,
        ),
    ]


def reconciler_metrics(services: Services) -> list[Metric]:
    """Leases that this server compared, and what the reconciler leaves to people."""
    state = services.reconciling
    found = [
        Metric(
            "gpucredits_reconciled_leases_total",
            "counter",
            "Ended leases that this server compared with their measured use, or corrected.",
            (("compared", state.compared_total), ("posted", state.posted_total)),
            "result",
        )
    ]
    if state.counts is not None:
        waiting = (
            ("due", state.counts.due),
            ("drift_alarms", state.counts.open_alarms),
            ("unmatched_use", state.counts.unmatched),
        )
        meaning = "Leases that are due, open alarms of drift, and use that belongs to no lease."
        found.append(
            Metric("gpucredits_reconciler_waiting", "gauge", meaning, waiting, "what"),
        )
        meaning = "Events without a lease that were not kept: their orgs had no room for them."
        dropped = state.counts.dropped
        found.append(number("gpucredits_unmatched_dropped_total", "counter", meaning, dropped))
    return found


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
            return await services.run(depth)
    except (Unavailable, Conflict, TimeoutError):
        return None
