"""Measured use: events a second into PostgreSQL, with and without a bus, beside a bare JetStream.

Owns: the order of the contestants. Each takes the same events in the same messages: a node reports
the jobs that it runs, as many events a request as an agent with that many jobs would send.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from gpucredits.core.ids import RESERVATION, format_id, lease_number
from gpucredits.metering.usage_message import messages_of
from gpucredits.store.billing.usage_events import UsageRow
from gpucredits_bench.contestants.jetstream import nats_serving, publish_and_consume
from gpucredits_bench.contestants.server import Server, run_alone, serving
from gpucredits_bench.options import Progress
from gpucredits_bench.runs import gated
from gpucredits_bench.runs.usage_figures import Intake, UsageFigures
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic import seeding
from gpucredits_bench.traffic.beating import Lease
from gpucredits_bench.traffic.exchange import ExchangeError, Line, Target
from gpucredits_bench.workload import Workload, org_path

LINES = 4
STORED_TIMEOUT_S = 600.0
POLL_S = 0.02
SLICE_MS = 1_000
PASS = 500  # leases in a pass of the reconciler
COUNT = "SELECT coalesce(sum(events), 0)::bigint FROM measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOptions:
    """The knobs of a run."""

    reservations: int = 2_000
    orgs: int = 20
    events: int = 100_000
    events_per_post: int = 500
    folder: Path | None = None


def measure_usage(options: UsageOptions, progress: Progress) -> UsageFigures:
    """The whole run."""
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        direct = run_ours(options, folder / "direct", progress)
        with nats_serving(folder / "nats") as url:
            bus = run_ours(options, folder / "bus", progress, "--bus", url)
            posts = bus.posts
            bodies = [message.body for post in posts for message in messages_of(post, "bench", b"")]
            published_s, consumed_s = publish_and_consume(url, bodies, lines=LINES)
        count = sum(map(len, posts))
        progress(f"bare JetStream: {count / consumed_s:,.0f} events/s in {len(bodies):,} messages")
    return UsageFigures(
        fdatasync_us=sync_us,
        events=count,
        events_per_post=options.events_per_post,
        bytes_per_event=sum(map(len, bodies)) / count,
        direct=direct.intake,
        bus=bus.intake,
        bare=Intake(accepted_per_second=count / published_s, stored_per_second=count / consumed_s),
        jobs_reconciled_per_second=direct.reconciled_per_second,
        verified=direct.is_clean and bus.is_clean,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OurRun:
    """One contestant of ours: its figures, whether its books hold, and what it was sent."""

    intake: Intake
    reconciled_per_second: float
    is_clean: bool
    posts: list[list[UsageRow]]


def run_ours(options: UsageOptions, folder: Path, progress: Progress, *serve: str) -> OurRun:
    """Take all events, then end the jobs and reconcile them."""
    folder.mkdir()
    folder.chmod(0o711)  # the database's user passes through
    with serving(folder, *serve) as server:
        workload = Workload(options.reservations, options.orgs)
        leases = seeding.seed(server.target, workload, progress)
        asyncio.run(run_alone(server.database_url, "VACUUM ANALYZE"))
        posts = posts_of(options, leases)
        intake = send_all(server, posts)
        name = "through the bus" if serve else "straight to PostgreSQL"
        progress(f"{name}: {intake.stored_per_second:,.0f} events/s")
        reconciled = reconcile_all(server, options.orgs, leases)
    progress(f"{name}: {reconciled:,.0f} jobs reconciled/s; verifying the books")
    return OurRun(
        intake=intake,
        reconciled_per_second=reconciled,
        is_clean=gated.is_clean(folder, progress),
        posts=posts,
    )


def reconcile_all(server: Server, orgs: int, leases: list[Lease]) -> float:
    """End every job without a word on its use, and let the reconciler post what was measured.

    Jobs a second, from the first pass to the last. Every job must have been compared.
    """
    with Line(server.target) as line:
        for org in range(orgs):
            policy = {"account": org_path(org), "mode": "post"}
            line.call("/v1/reconciliation-policy", policy, key=f"policy-{org}", method="PUT")
        for lease in leases:
            place = f"/v1/reservations/{lease.reservation_id}:settle"
            line.call(place, {}, key=f"end-{lease.reservation_id}")
        compared, is_done = 0, False
        started = time.perf_counter()
        while not is_done:
            answer = line.call("/v1/reconciler:run", {"at_once": True, "limit": PASS})
            compared, is_done = compared + answer["compared"], answer["is_done"]
        took_s = time.perf_counter() - started
    if compared != len(leases):
        raise ExchangeError(f"{compared} of {len(leases)} jobs were reconciled")
    return compared / took_s


def posts_of(options: UsageOptions, leases: list[Lease]) -> list[list[UsageRow]]:
    """Requests of one node each: an event of each of its leases, again and again."""
    per_post = min(options.events_per_post, len(leases))
    nodes = [leases[first : first + per_post] for first in range(0, len(leases), per_post)]
    posts: list[list[UsageRow]] = []
    seq = 0
    while sum(map(len, posts)) < options.events:
        seq += 1
        posts.extend([[row_of(lease, seq) for lease in node] for node in nodes])
    return posts


def row_of(lease: Lease, seq: int) -> UsageRow:
    """An event of a lease, as the bare contestant carries it."""
    org_id, number = lease_number(lease.reservation_id) or (0, 0)
    payload = {"start_ms": (seq - 1) * SLICE_MS, "end_ms": seq * SLICE_MS, "gpu_utilization": 93}
    return UsageRow(org_id, f"job-{number}", "node", number, 0, seq, SLICE_MS, payload)


def request_of(row: UsageRow, reservation_id: str) -> dict[str, object]:
    """The same event as it is posted."""
    return {"reservation_id": reservation_id, "seq": row.seq, **row.payload}


def agent_of(server: Server) -> Target:
    """The server, as an agent that the system vouches for speaks to it."""
    with Line(server.target) as line:
        made = line.call("/v1/keys", {"role": "agent", "name": "nodes"}, key="agent")
    return Target(server.target.port, made["secret"])


def send_all(server: Server, posts: list[list[UsageRow]]) -> Intake:
    """Post everything from some lines at once, and wait until all of it is stored."""
    count = sum(map(len, posts))
    started = time.perf_counter()
    with ThreadPoolExecutor(LINES) as senders:
        sent = sum(senders.map(sender(server, posts), range(LINES)))
    accepted_s = time.perf_counter() - started
    if sent != count:
        raise ExchangeError(f"{count - sent} of {count} events were not taken")
    asyncio.run(until_stored(server.database_url, count))
    return Intake(
        accepted_per_second=count / accepted_s,
        stored_per_second=count / (time.perf_counter() - started),
    )


def sender(server: Server, posts: list[list[UsageRow]]) -> Callable[[int], int]:
    """What one line does: every so many-th request; how many events were taken."""
    agent = agent_of(server)

    def send(first: int) -> int:
        taken = 0
        with Line(agent) as line:
            for post in posts[first::LINES]:
                events = [
                    request_of(row, format_id(RESERVATION, row.org_id, row.reservation_id))
                    for row in post
                ]
                answer = line.call("/v1/usage", {"events": events})
                taken += answer["stored"] + answer.get("accepted", 0)
        return taken

    return send


async def until_stored(url: str, count: int) -> None:
    """Wait until the sums of all leases have so many events; more is an error."""
    connection = await asyncpg.connect(url)
    deadline = time.monotonic() + STORED_TIMEOUT_S
    try:
        stored = await connection.fetchval(COUNT)
        while stored < count and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            stored = await connection.fetchval(COUNT)
    finally:
        await connection.close()
    if stored != count:
        raise ExchangeError(f"{stored} events were counted of {count} that were sent")
