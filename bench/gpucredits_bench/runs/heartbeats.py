"""The run: two textbooks, ours through HTTP, raw limit, all on one PostgreSQL, then verify.

Owns: the order of the parts: windows that alternate, with the same warm-up, event loop and limits
(none) for all; and that nothing is left behind: processes end, directories go.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import uvloop

from gpucredits.store.embedded.server import EmbeddedPostgres
from gpucredits_bench.contestants import baseline, books, inprocess, rawcopy
from gpucredits_bench.contestants.baseline import Baseline, Kind
from gpucredits_bench.contestants.inprocess import InProcess
from gpucredits_bench.contestants.server import (
    Server,
    Window,
    database_url,
    expect,
    figures_of,
    generating,
    run_alone,
    run_load,
    serving,
    wal_position,
)
from gpucredits_bench.options import Options, Progress
from gpucredits_bench.runs.figures import Figures, Ours, bars
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic import probe, seeding
from gpucredits_bench.traffic.beating import Lease
from gpucredits_bench.traffic.load import COUNTED, COUNTING, Spec
from gpucredits_bench.traffic.load import Figures as LoadFigures
from gpucredits_bench.workload import dealt

ADMISSION_LINES = 32
OURS = "ours"
SMALL = "ours, 8 beats a report"
GROWTH = (10_000, 100_000, 1_000_000)


def measure(options: Options, progress: Progress, *, growth: bool = False) -> Figures:
    """The whole run."""
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        ours, window, contest = measure_ours(options, folder, progress, beside=True)
        with EmbeddedPostgres(folder / "data") as server:
            progress("raw limit: copying the same rows")
            limit = asyncio.run(rawcopy.measure(server.dsn(), window.began_us, window.ended_us))
            ours.beats_per_commit = limit.rows_per_commit
            progress("verifying the books")
            verification = asyncio.run(books.verify(server.dsn()))
            for finding in verification.findings:
                progress(f"BROKEN: {finding.claim}: {finding.rows[:3]}")
    textbook, call = (median(contest.rates[kind]) for kind in baseline.KINDS)
    figures = Figures(
        fdatasync_us=sync_us,
        textbook_by_connections=contest.by_connections("statements"),
        call_by_connections=contest.by_connections("calls"),
        textbook_per_second=textbook,
        call_per_second=call,
        ours_per_second=ours.ours_per_second,
        copy_per_second=limit.per_second,
        copy_connections=limit.connections,
        ratio_to_textbook=ours.ours_per_second / textbook,
        ratio_to_call=ours.ours_per_second / call,
        ratio_to_copy=ours.ours_per_second / limit.per_second,
        windows=contest.rates,
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
    with workplace(sized.folder) as folder:
        return measure_ours(sized, folder, progress)[0]


def measure_in_process(options: Options, progress: Progress) -> InProcess:
    """Ours without HTTP: the ledger's door driven from the process that holds it."""
    with workplace(options.folder) as folder, EmbeddedPostgres(folder / "data") as server:
        return uvloop.run(inprocess.measure(server.dsn(), options, progress))


class Contest:
    """Windows of all contestants in turn, each round in the opposite order."""

    def __init__(
        self, server: Server, leases: list[Lease], options: Options, textbooks: list[Baseline]
    ) -> None:
        self._server = server
        self._options = options
        self._textbooks = {each.kind: each for each in textbooks}
        self._specs = {
            name: spec_of(replace(options, beats_per_post=size), server, leases)
            for name, size in ((OURS, options.beats_per_post), (SMALL, probe.REPORT_BEATS))
        }
        self._seq = 1
        self.windows: dict[str, list[Window]] = {OURS: [], SMALL: []}
        self.rates: dict[str, list[float]] = {name: [] for name in (*self._textbooks, OURS, SMALL)}

    def run(self, progress: Progress) -> None:
        """Warm everything up for as long, then measure in rounds."""
        options = self._options
        for textbook in self._textbooks.values():
            textbook.choose(
                warm_up_s=options.lead_in_s, seconds=options.window_s, progress=progress
            )
        for name in self.rates:
            self._window(name, warm_up_s=0.0, seconds=options.warm_up_s)
        for number in range(options.windows):
            for name in reversed(self.rates) if number % 2 else self.rates:
                rate = self._window(
                    name, warm_up_s=options.lead_in_s, seconds=options.window_s, keep=True
                )
                self.rates[name].append(rate)
        for name, rates in self.rates.items():
            progress(f"{name}: {median(rates):,.0f} heartbeats/s")

    def _window(self, name: str, *, warm_up_s: float, seconds: float, keep: bool = False) -> float:
        asyncio.run(run_alone(self._server.database_url, "CHECKPOINT"))
        if name in self._textbooks:
            kind: Kind = "calls" if name == "calls" else "statements"
            return self._textbooks[kind].window(warm_up_s=warm_up_s, seconds=seconds)
        spec = self._specs[name]
        spec.first_seq, spec.warm_up_s, spec.seconds = self._seq, warm_up_s, seconds
        url = self._server.database_url
        window = run_load(self._server, spec, lambda: asyncio.run(wal_position(url)))
        self._seq = window.figures.last_seq + 1
        if keep:
            self.windows[name].append(window)
        return window.figures.per_second

    def by_connections(self, kind: Kind) -> dict[str, float]:
        """What a textbook did with each number of connections."""
        rates = self._textbooks[kind].by_connections
        return {str(count): rate for count, rate in rates.items()}

    def typical(self, name: str) -> Window:
        """The window in the middle."""
        windows = sorted(self.windows[name], key=lambda each: each.figures.per_second)
        return windows[len(windows) // 2]

    def half_spec(self) -> Spec:
        """What the generator does by the clock afterwards."""
        spec = self._specs[OURS]
        spec.first_seq, spec.warm_up_s = self._seq, self._options.lead_in_s
        spec.seconds = self._options.seconds
        return spec


def measure_ours(
    options: Options, folder: Path, progress: Progress, *, beside: bool = False
) -> tuple[Ours, Window, Contest]:
    """Seed a server and measure it: idle, saturated (beside textbooks), at half load, admitting."""
    workload = options.workload
    with serving(folder) as server:
        began = time.monotonic()
        leases = seeding.seed(server.target, workload, progress)
        seed_seconds = time.monotonic() - began
        textbooks = textbooks_of(folder, options, progress) if beside else []
        asyncio.run(run_alone(server.database_url, "VACUUM ANALYZE"))
        asyncio.run(run_alone(server.database_url, "CHECKPOINT"))
        progress("ours: timing reserves on an idle server")
        idle = probe.time_reserves(
            server.target, orgs=workload.orgs, seconds=options.seconds / 2, name="idle"
        )
        progress("ours: one node reports 8 heartbeats every 15 ms")
        few, leases = leases[: probe.REPORT_BEATS], leases[probe.REPORT_BEATS :]
        report = probe.time_reports(server.target, few, seconds=options.seconds / 2)
        contest = Contest(server, leases, options, textbooks)
        contest.run(progress)
        for textbook in textbooks:
            textbook.close()
        rate = median(contest.rates[OURS])
        half, loaded = measure_by_clock(options, server, contest.half_spec(), rate / 2)
        progress(f"ours: reserve p95 {loaded.p95_s * 1e3:.1f} ms at half load; now admissions")
        admissions = run_load(server, admissions_of(options, server), lambda: 0).figures.per_second
    ours = ours_of(options, seed_seconds, contest, half, (idle, report), loaded, admissions)
    return ours, contest.typical(OURS), contest


def textbooks_of(folder: Path, options: Options, progress: Progress) -> list[Baseline]:
    """Both textbooks, on the PostgreSQL that the server runs."""
    progress("textbooks: making their tables")
    address_of = partial(database_url, folder / "data")
    made = [Baseline(kind, address_of, options) for kind in baseline.KINDS]
    for each in made:
        each.create()
    return made


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


def measure_by_clock(
    options: Options, server: Server, spec: Spec, beats_per_second: float, *, name: str = "loaded"
) -> tuple[LoadFigures, probe.Latency]:
    """Reserves timed while nodes report by the clock, at half of what saturates or at any rate."""
    spec.mode = "open"
    spec.beats_per_second = beats_per_second
    with generating(server, spec) as process:
        expect(process, COUNTING)
        loaded = probe.time_reserves(
            server.target,
            orgs=options.workload.orgs,
            seconds=options.seconds,
            name=name,
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
    contest: Contest,
    half: LoadFigures,
    idles: tuple[probe.Latency, probe.Latency],
    loaded: probe.Latency,
    admissions: float,
) -> Ours:
    """The figures of one size."""
    window, small = contest.typical(OURS), contest.typical(SMALL)
    figures = window.figures
    idle, report = idles
    beats, small_beats = max(figures.done, 1), max(small.figures.done, 1)
    return Ours(
        reservations=options.reservations,
        orgs=options.workload.orgs,
        seed_seconds=seed_seconds,
        ours_per_second=median(contest.rates[OURS]),
        small_per_second=median(contest.rates[SMALL]),
        small_server_cpu_us_per_heartbeat=small.server_cpu_s / small_beats * 1e6,
        small_postgres_cpu_us_per_heartbeat=small.postgres_cpu_s / small_beats * 1e6,
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
