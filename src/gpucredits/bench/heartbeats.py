"""The run: textbook, ours through HTTP, raw limit, all on one PostgreSQL, then verify.

Owns: the order of the parts, and that nothing is left behind: processes end, directories go.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvloop

from gpucredits.bench import baseline, books, inprocess, probe, rawcopy, seeding
from gpucredits.bench.beating import Lease
from gpucredits.bench.figures import Figures, InProcess, Ours, bars
from gpucredits.bench.load import COUNTED, COUNTING, Spec, quantile
from gpucredits.bench.load import Figures as LoadFigures
from gpucredits.bench.options import Options, Progress
from gpucredits.bench.server import (
    Server,
    Window,
    expect,
    figures_of,
    generating,
    run_alone,
    run_load,
    serving,
    wal_position,
)
from gpucredits.bench.workload import dealt
from gpucredits.store.embedded.server import EmbeddedPostgres

ADMISSION_LINES = 32
SEQ_STEP = 1_000_000  # apart, so that every phase reports higher than the one before
GROWTH = (10_000, 100_000, 1_000_000)
SYNCS = 200


def measure(options: Options, progress: Progress, *, growth: bool = False) -> Figures:
    """The whole run."""
    with workplace(options) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        with EmbeddedPostgres(folder / "data") as server:
            rates = asyncio.run(baseline.measure(server.dsn, options, progress))
        ours, window = measure_ours(options, folder, progress)
        with EmbeddedPostgres(folder / "data") as server:
            progress("raw limit: copying the same rows")
            limit = asyncio.run(rawcopy.measure(server.dsn(), window.began_us, window.ended_us))
            ours.beats_per_commit = limit.rows_per_commit
            progress("verifying the books")
            verification = asyncio.run(books.verify(server.dsn()))
            for finding in verification.findings:
                progress(f"BROKEN: {finding.claim}: {finding.rows[:3]}")
    best = max(rates.values())
    figures = Figures(
        fdatasync_us=sync_us,
        textbook_by_connections={str(count): rate for count, rate in rates.items()},
        textbook_per_second=best,
        ours_per_second=ours.ours_per_second,
        copy_per_second=limit.per_second,
        copy_connections=limit.connections,
        ratio_to_textbook=ours.ours_per_second / best,
        ratio_to_copy=ours.ours_per_second / limit.per_second,
        verified=verification.is_clean,
        ours=ours,
    )
    if growth:
        figures.growth = [ours_at(options, size, ours, progress) for size in GROWTH]
    figures.bars = bars(figures)
    return figures


def ours_at(options: Options, size: int, known: Ours, progress: Progress) -> Ours:
    """The same with another number of reservations, unless that is what was measured already."""
    if size == options.reservations:
        return known
    sized = replace(options, reservations=size)
    with workplace(sized) as folder:
        return measure_ours(sized, folder, progress)[0]


def measure_in_process(options: Options, progress: Progress) -> InProcess:
    """Ours without HTTP: the ledger's door driven from the process that holds it."""
    with workplace(options) as folder, EmbeddedPostgres(folder / "data") as server:
        return uvloop.run(inprocess.measure(server.dsn(), options, progress))


@contextmanager
def workplace(options: Options) -> Iterator[Path]:
    """A directory for databases and logs that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="gpucredits-bench-", dir=options.folder))
    folder.chmod(0o711)  # the database's user passes through
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def time_syncs(folder: Path) -> float:
    """Microseconds that a durable write of one page takes: what every commit waits for."""
    path = folder / "sync"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    taken = []
    try:
        for _ in range(SYNCS):
            os.pwrite(handle, os.urandom(8_192), 0)
            started = time.perf_counter()
            os.fdatasync(handle)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(handle)
        path.unlink()
    return quantile(sorted(taken), 0.5) * 1e6


def measure_ours(options: Options, folder: Path, progress: Progress) -> tuple[Ours, Window]:
    """Seed a server and measure it: idle, saturated, at half load, and with admissions only."""
    workload = options.workload
    with serving(folder) as server:
        began = time.monotonic()
        leases = seeding.seed(server.target, workload, progress)
        seed_seconds = time.monotonic() - began
        asyncio.run(run_alone(server.database_url, "VACUUM ANALYZE"))
        asyncio.run(run_alone(server.database_url, "CHECKPOINT"))
        progress("ours: timing reserves on an idle server")
        idle = probe.time_reserves(
            server.target, orgs=workload.orgs, seconds=options.seconds / 2, name="idle"
        )
        progress("ours: one node reports 8 heartbeats every 15 ms")
        few, leases = leases[: probe.REPORT_BEATS], leases[probe.REPORT_BEATS :]
        report = probe.time_reports(server.target, few, seconds=options.seconds / 2)
        spec = spec_of(options, server, leases)
        progress(f"ours: {options.nodes} nodes report as fast as they are answered")
        window = run_load(server, spec, lambda: asyncio.run(wal_position(server.database_url)))
        progress(f"ours: {window.figures.per_second:,.0f} heartbeats/s")
        half, loaded = measure_half(options, server, spec, window.figures.per_second / 2)
        progress(f"ours: reserve p95 {loaded.p95_s * 1e3:.1f} ms at half load; now admissions")
        admissions = run_load(server, admissions_of(options, server), lambda: 0).figures.per_second
    idles = (idle, report)
    return ours_of(options, seed_seconds, window, half, idles, loaded, admissions), window


def spec_of(options: Options, server: Server, leases: list[Lease]) -> Spec:
    """What the generator does to saturate the server."""
    nodes = min(options.nodes, max(len(leases) // options.beats_per_post, 1))
    return Spec(
        mode="closed",
        port=server.target.port,
        token=server.target.token,
        warm_up_s=options.warm_up_s,
        seconds=options.seconds,
        beats_per_post=options.beats_per_post,
        nodes=dealt(leases, nodes),
    )


def measure_half(
    options: Options, server: Server, spec: Spec, beats_per_second: float
) -> tuple[LoadFigures, probe.Latency]:
    """Reserves timed while nodes report by the clock at half of what saturates."""
    spec.mode = "open"
    spec.beats_per_second = beats_per_second
    spec.first_seq = SEQ_STEP
    with generating(server, spec) as process:
        expect(process, COUNTING)
        loaded = probe.time_reserves(
            server.target,
            orgs=options.workload.orgs,
            seconds=options.seconds,
            name="loaded",
        )
        expect(process, COUNTED)
        figures = figures_of(process)
    if figures.problems:
        raise RuntimeError("; ".join(figures.problems))
    return figures, loaded


def admissions_of(options: Options, server: Server) -> Spec:
    """What the generator does to count admissions."""
    return Spec(
        mode="admissions",
        port=server.target.port,
        token=server.target.token,
        warm_up_s=min(options.warm_up_s, 1.0),
        seconds=options.seconds / 2,
        dispatchers=ADMISSION_LINES,
        orgs=options.workload.orgs,
    )


def ours_of(  # one argument for each part
    options: Options,
    seed_seconds: float,
    window: Window,
    half: LoadFigures,
    idles: tuple[probe.Latency, probe.Latency],
    loaded: probe.Latency,
    admissions: float,
) -> Ours:
    """The figures of one size."""
    figures = window.figures
    idle, report = idles
    beats = max(figures.done, 1)
    return Ours(
        reservations=options.reservations,
        orgs=options.workload.orgs,
        seed_seconds=seed_seconds,
        ours_per_second=figures.per_second,
        post_p50_ms=figures.p50_s * 1e3,
        post_p95_ms=figures.p95_s * 1e3,
        beats_checked=figures.checked,
        beats_per_commit=0.0,
        wal_bytes_per_heartbeat=window.wal_bytes / beats,
        server_cpu_us_per_heartbeat=window.server_cpu_s / beats * 1e6,
        postgres_cpu_us_per_heartbeat=window.postgres_cpu_s / beats * 1e6,
        generator_cpu_us_per_heartbeat=figures.cpu_s / beats * 1e6,
        server_memory_bytes=window.memory.server_bytes,
        postgres_memory_bytes=window.memory.postgres_bytes,
        half_load_per_second=half.per_second,
        half_load_post_p50_ms=half.p50_s * 1e3,
        half_load_post_p95_ms=half.p95_s * 1e3,
        reserve_idle_p50_ms=idle.p50_s * 1e3,
        reserve_idle_p95_ms=idle.p95_s * 1e3,
        small_report_p50_ms=report.p50_s * 1e3,
        small_report_p95_ms=report.p95_s * 1e3,
        reserve_loaded_p50_ms=loaded.p50_s * 1e3,
        reserve_loaded_p95_ms=loaded.p95_s * 1e3,
        reserve_samples=loaded.samples,
        admissions_per_second=admissions,
    )
