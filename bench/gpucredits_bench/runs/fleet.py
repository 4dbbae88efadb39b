"""The run of a fleet: jobs that report every 30 s, a few in a report, while others ask for leases.

Owns: the order of the windows, without limits and with all of them, and the bars of latencies.
Reports leave by the clock, so lateness counts as latency.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from statistics import median

import msgspec

from gpucredits.compiled import is_compiled
from gpucredits_bench.contestants.server import run_alone
from gpucredits_bench.options import Options, Progress
from gpucredits_bench.runs.gated import ORDER, Contestant, contestant, is_clean
from gpucredits_bench.runs.heartbeats import measure_by_clock
from gpucredits_bench.runs.report import mark
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic.probe import REPORT_BEATS

INTERVAL_S = 30.0  # between two heartbeats of a job
WINDOW_S_MAX = 60.0
REPORT_P95_MS_MAX = 25.0
RESERVE_P95_MS_MAX = 8.0
RATIO_MAX = 1.4


class FleetWindow(msgspec.Struct, kw_only=True):
    """One window: how long reports and reserves took, in milliseconds."""

    per_second: float
    report_p50_ms: float
    report_p95_ms: float
    reserve_p50_ms: float
    reserve_p95_ms: float


class FleetFigures(msgspec.Struct, kw_only=True):
    """A whole run; what is compared are medians over the windows of each side."""

    fdatasync_us: float
    reservations: int
    orgs: int
    beats_per_second: float
    plain: list[FleetWindow]
    gated: list[FleetWindow]
    verified: bool
    compiled: bool = msgspec.field(default_factory=is_compiled)
    bars: dict[str, bool] = {}

    @property
    def report_ratio(self) -> float:
        """Reports with all gates to reports without, at p95."""
        return ratio(report_p95(self.gated), report_p95(self.plain))

    @property
    def reserve_ratio(self) -> float:
        """Reserves with all gates to reserves without, at p95."""
        return ratio(reserve_p95(self.gated), reserve_p95(self.plain))


def ratio(gated_ms: float, plain_ms: float) -> float:
    """One to the other; no answer in any plain window is a promise missed, not a crash."""
    return gated_ms / plain_ms if plain_ms else inf


def report_p95(windows: list[FleetWindow]) -> float:
    """The median of the windows."""
    return median(each.report_p95_ms for each in windows)


def reserve_p95(windows: list[FleetWindow]) -> float:
    """The median of the windows."""
    return median(each.reserve_p95_ms for each in windows)


def fleet_bars(figures: FleetFigures) -> dict[str, bool]:
    """Which of the promises this run kept."""
    return {
        "report_p95": report_p95(figures.plain) < REPORT_P95_MS_MAX,
        "reserve_p95": reserve_p95(figures.plain) < RESERVE_P95_MS_MAX,
        "report_ratio": figures.report_ratio <= RATIO_MAX,
        "reserve_ratio": figures.reserve_ratio <= RATIO_MAX,
        "verified": figures.verified,
    }


def measure_fleet(options: Options, progress: Progress) -> FleetFigures:
    """The whole run: seed both, measure them in turn, verify the books of both."""
    options = replace(
        options, beats_per_post=REPORT_BEATS, seconds=min(options.seconds, WINDOW_S_MAX)
    )
    rate = options.reservations / INTERVAL_S
    windows: dict[str, list[FleetWindow]] = {name: [] for name in ORDER}
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        with ExitStack() as running:
            sides = {
                name: contestant(options, folder / name, running, progress) for name in windows
            }
            for number, name in enumerate(ORDER):
                window = measure_window(options, sides[name], rate, f"fleet-{number}")
                windows[name].append(window)
                progress(f"{name}: {line_of(window)}")
        progress("verifying the books of both")
        clean = [is_clean(folder / name, progress) for name in sides]
    figures = FleetFigures(
        fdatasync_us=sync_us,
        reservations=options.workload.reservations,
        orgs=options.workload.orgs,
        beats_per_second=rate,
        plain=windows["plain"],
        gated=windows["gated"],
        verified=all(clean),
    )
    figures.bars = fleet_bars(figures)
    return figures


def measure_window(options: Options, side: Contestant, rate: float, name: str) -> FleetWindow:
    """Reports by the clock, and reserves timed beside them."""
    asyncio.run(run_alone(side.server.database_url, "CHECKPOINT"))
    reports, reserves = measure_by_clock(options, side.server, side.spec, rate, name=name)
    side.spec.first_seq = reports.last_seq + 1
    return FleetWindow(
        per_second=reports.per_second,
        report_p50_ms=reports.p50_s * 1e3,
        report_p95_ms=reports.p95_s * 1e3,
        reserve_p50_ms=reserves.p50_s * 1e3,
        reserve_p95_ms=reserves.p95_s * 1e3,
    )


def line_of(window: FleetWindow) -> str:
    """One window for people."""
    return (
        f"{window.per_second:,.0f} heartbeats/s; report p50 / p95 {window.report_p50_ms:.1f} / "
        f"{window.report_p95_ms:.1f} ms, reserve {window.reserve_p50_ms:.1f} / "
        f"{window.reserve_p95_ms:.1f} ms"
    )


def fleet_table(figures: FleetFigures) -> str:
    """The figures for people."""
    kept = figures.bars
    lines = [
        "",
        (
            f"{figures.reservations:,} jobs over {figures.orgs:,} orgs, each reported every "
            f"{INTERVAL_S:.0f} s ({figures.beats_per_second:,.0f} heartbeats/s), {REPORT_BEATS} in "
            f"a report; {'rules compiled' if figures.compiled else 'rules as plain Python'}"
        ),
        "",
    ]
    for name, windows in (("without gates", figures.plain), ("all gates on", figures.gated)):
        lines += [f"{name}: {line_of(window)}" for window in windows]
    promises = {
        "report_p95": (
            f"report p95 {report_p95(figures.plain):.1f} ms (under {REPORT_P95_MS_MAX:.0f})"
        ),
        "reserve_p95": (
            f"reserve p95 {reserve_p95(figures.plain):.1f} ms (under {RESERVE_P95_MS_MAX:.0f})"
        ),
        "report_ratio": (
            f"with all gates, reports {figures.report_ratio:.2f} x (at most {RATIO_MAX})"
        ),
        "reserve_ratio": (
            f"with all gates, reserves {figures.reserve_ratio:.2f} x (at most {RATIO_MAX})"
        ),
        "verified": "the books of both databases verify",
    }
    lines += ["", *[mark(text, is_kept=kept[name]) for name, text in promises.items()]]
    return "\n".join(lines)
