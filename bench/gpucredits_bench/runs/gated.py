"""The run with all gates on: the same work with and without limits, in windows that alternate.

Owns: the order of the windows, and that only the limits differ: both contestants are servers of
their own on databases of their own, with the same orgs, accounts, grants and jobs.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from gpucredits.store.embedded.server import EmbeddedPostgres
from gpucredits_bench.contestants import books
from gpucredits_bench.contestants.server import (
    Server,
    Window,
    run_alone,
    run_load,
    serving,
    wal_position,
)
from gpucredits_bench.options import Options, Progress
from gpucredits_bench.runs.figures import GatedFigures, Side, gated_bars
from gpucredits_bench.runs.heartbeats import spec_of
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic import seeding
from gpucredits_bench.traffic.gating import LIMITS_OF_ORG
from gpucredits_bench.traffic.load import Spec

ORDER = ("plain", "gated", "gated", "plain")  # a machine that drifts does not favour one of them


@dataclass(slots=True)
class Contestant:
    """A seeded server, what its nodes do, and the windows that were measured so far."""

    server: Server
    spec: Spec
    seed_seconds: float
    windows: list[Window] = field(default_factory=list)

    def measure(self) -> float:
        """Saturate it for one more window; heartbeats per second."""
        url = self.server.database_url
        asyncio.run(run_alone(url, "CHECKPOINT"))
        window = run_load(self.server, self.spec, lambda: asyncio.run(wal_position(url)))
        self.spec.first_seq = window.figures.last_seq + 1
        self.windows.append(window)
        return window.figures.per_second


def measure_gated(options: Options, progress: Progress) -> GatedFigures:
    """The whole run: seed both, measure them in turn, verify the books of both."""
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        with ExitStack() as running:
            contestants = {
                name: contestant(options, folder / name, running, progress)
                for name in ("plain", "gated")
            }
            for name in ORDER:
                rate = contestants[name].measure()
                progress(f"{name}: {rate:,.0f} heartbeats/s")
        progress("verifying the books of both")
        clean = {name: is_clean(folder / name, progress) for name in contestants}
    ours = side_of(contestants["plain"], is_verified=clean["plain"])
    gated = side_of(contestants["gated"], is_verified=clean["gated"])
    workload = options.workload
    figures = GatedFigures(
        fdatasync_us=sync_us,
        reservations=workload.reservations,
        orgs=workload.orgs,
        limits=workload.orgs * LIMITS_OF_ORG,
        ours_per_second=ours.per_second,
        gated_per_second=gated.per_second,
        ratio_gated=gated.per_second / ours.per_second,
        verified=ours.verified and gated.verified,
        ours=ours,
        gated=gated,
    )
    figures.bars = gated_bars(figures)
    return figures


def contestant(
    options: Options, folder: Path, running: ExitStack, progress: Progress
) -> Contestant:
    """Start and seed a server in a folder that says whether its orgs have limits."""
    folder.mkdir(mode=0o711)
    server = running.enter_context(serving(folder))
    progress(f"{folder.name}: seeding")
    began = time.monotonic()
    is_gated = folder.name == "gated"
    leases = seeding.seed(server.target, options.workload, progress, is_gated=is_gated)
    seed_seconds = time.monotonic() - began
    asyncio.run(run_alone(server.database_url, "VACUUM ANALYZE"))
    return Contestant(server, spec_of(options, server, leases), seed_seconds)


def is_clean(folder: Path, progress: Progress) -> bool:
    """Whether every rule holds in the database that a server has left in a folder."""
    with EmbeddedPostgres(folder / "data") as server:
        verification = asyncio.run(books.verify(server.dsn()))
    for finding in verification.findings:
        progress(f"BROKEN: {folder.name}: {finding.claim}: {finding.rows[:3]}")
    return verification.is_clean


def side_of(measured: Contestant, *, is_verified: bool) -> Side:
    """The figures of one contestant over all its windows."""
    windows = measured.windows
    beats = max(sum(window.figures.done for window in windows), 1)
    return Side(
        seed_seconds=measured.seed_seconds,
        per_second=beats / sum(window.figures.seconds for window in windows),
        per_second_by_window=[window.figures.per_second for window in windows],
        post_p50_ms=max(window.figures.p50_s for window in windows) * 1e3,
        post_p95_ms=max(window.figures.p95_s for window in windows) * 1e3,
        beats_checked=sum(window.figures.checked for window in windows),
        wal_bytes_per_heartbeat=sum(window.wal_bytes for window in windows) / beats,
        server_cpu_us_per_heartbeat=sum(window.server_cpu_s for window in windows) / beats * 1e6,
        postgres_cpu_us_per_heartbeat=sum(each.postgres_cpu_s for each in windows) / beats * 1e6,
        generator_cpu_us_per_heartbeat=sum(each.figures.cpu_s for each in windows) / beats * 1e6,
        verified=is_verified,
    )
