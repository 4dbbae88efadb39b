"""The figures of admissions: medians and spreads over alternating windows, and their bars."""

from __future__ import annotations

from statistics import median

import msgspec

from gpucredits.compiled import is_compiled
from gpucredits_bench.runs.report import mark

RATIO_MIN = 2.0  # pairs of ours to the textbook's, over many orgs
RATIO_FROM = 8  # connections
ALONE_RATIO_MIN = 1.5
IDLE_RATIO_MAX = 1.6
BATCHES_MIN = 5_000.0


class Sample(msgspec.Struct, kw_only=True):
    """One window: pairs of a reserve and a settle, or reserves in batches."""

    per_second: float
    reserve_p50_ms: float
    reserve_p95_ms: float
    server_cpu_us: float
    postgres_cpu_us: float
    wal_bytes: float


class Cell(msgspec.Struct, kw_only=True):
    """The windows of all contestants under one load, in the order of the rounds."""

    name: str
    connections: int
    orgs: int
    samples: dict[str, list[Sample]]

    def median(self, name: str) -> float:
        """Pairs per second in the middle window."""
        return median(each.per_second for each in self.samples[name])

    def ratios(self, name: str) -> list[float]:
        """Ours to another, round by round: neighbours in time had the same machine."""
        pairs = zip(self.samples["ours"], self.samples[name], strict=True)
        return [ours.per_second / max(other.per_second, 1e-9) for ours, other in pairs]

    def cost(self, name: str) -> tuple[float, float, float]:
        """Medians of processor microseconds of server and PostgreSQL, and of log bytes."""
        samples = self.samples[name]
        return (
            median(each.server_cpu_us for each in samples),
            median(each.postgres_cpu_us for each in samples),
            median(each.wal_bytes for each in samples),
        )

    def p50_ms(self, name: str) -> float:
        """How long a reserve took in the middle window."""
        return median(each.reserve_p50_ms for each in self.samples[name])


class Idle(msgspec.Struct):
    """P50 of each window, in ms, of servers that do nothing else."""

    reserve: list[float] = []
    call: list[float] = []  # one call that writes the same rows, and decides nothing
    call_behind_http: list[float] = []  # of a bare server

    @property
    def ratios(self) -> list[float]:
        """A reserve to the call, round by round."""
        return [ours / max(call, 1e-9) for ours, call in zip(self.reserve, self.call, strict=True)]


class AdmissionFigures(msgspec.Struct, kw_only=True):
    """A whole run."""

    idle: Idle
    cells: list[Cell]
    batches_per_second: list[float]
    fdatasync_us: float = 0.0
    verified: bool = False
    compiled: bool = msgspec.field(default_factory=is_compiled)
    bars: dict[str, bool] = {}


def admission_bars(figures: AdmissionFigures) -> dict[str, bool]:
    """Each bar, and whether it was reached."""
    bars = {}
    for cell in figures.cells:
        ratio = median(cell.ratios("statements"))
        if cell.orgs == 1:
            bars[cell.name] = ratio >= ALONE_RATIO_MIN
        elif cell.connections >= RATIO_FROM:
            bars[cell.name] = ratio >= RATIO_MIN
    bars["idle"] = median(figures.idle.ratios) <= IDLE_RATIO_MAX
    bars["batches"] = median(figures.batches_per_second) >= BATCHES_MIN
    bars["verified"] = figures.verified
    return bars


def admission_table(figures: AdmissionFigures) -> str:
    """Everything a run showed."""
    kept = figures.bars
    lines = [
        "",
        (
            f"pairs of reserve and settle behind HTTP, durable (one page to disk: "
            f"{figures.fdatasync_us:,.0f} µs), {'compiled' if figures.compiled else 'not compiled'}"
        ),
        "",
        "                            pairs/s, median (spread)   reserve p50   processor µs   WAL",
    ]
    for cell in figures.cells:
        lines.append(cell.name)
        for name in cell.samples:
            server, postgres, wal = cell.cost(name)
            lines.append(
                f"  {LABELS[name]:<22} {cell.median(name):>8,.0f} {spread(cell, name):<18}"
                f" {cell.p50_ms(name):>8.2f} ms {server:>8,.0f} + {postgres:<6,.0f} {wal:>6,.0f}"
            )
        lines += [f"  {ratio_line(cell, name)}" for name in cell.samples if name != "ours"]
    idle = figures.idle
    call, behind = median(idle.call), median(idle.call_behind_http)
    lines += [
        "",
        (
            f"idle, p50: a reserve {median(idle.reserve):.2f} ms; one call that writes the same"
            f" rows {call:.2f} ms; that call behind bare HTTP {behind:.2f} ms,"
            f" {behind / max(call, 1e-9):.2f} x the call"
        ),
        f"batches of 100: {listed(figures.batches_per_second)} reserves/s",
        "",
    ]
    for cell in figures.cells:
        if cell.name in kept:
            least = ALONE_RATIO_MIN if cell.orgs == 1 else RATIO_MIN
            ratio = median(cell.ratios("statements"))
            promise = f"{cell.name}: {ratio:.2f} x the textbook (at least {least})"
            lines.append(mark(promise, is_kept=kept[cell.name]))
    idle_ratio = median(idle.ratios)
    batches = median(figures.batches_per_second)
    lines += [
        mark(
            f"idle reserve: {idle_ratio:.2f} x the call (at most {IDLE_RATIO_MAX})",
            is_kept=kept["idle"],
        ),
        mark(
            f"batches: {batches:,.0f} reserves/s (at least {BATCHES_MIN:,.0f})",
            is_kept=kept["batches"],
        ),
        mark("the books of all contestants add up", is_kept=kept["verified"]),
    ]
    return "\n".join(lines)


LABELS = {
    "ours": "ours",
    "statements": "textbook",
    "calls": "textbook, one call",
    "floor": "a key each, no rules",
}


def spread(cell: Cell, name: str) -> str:
    """The slowest and the fastest window."""
    rates = [each.per_second for each in cell.samples[name]]
    return f"({min(rates):,.0f} to {max(rates):,.0f})"


def ratio_line(cell: Cell, name: str) -> str:
    """Ours to another: the median of the rounds, and their spread."""
    ratios = cell.ratios(name)
    return f"ours : {LABELS[name]} = {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def listed(values: list[float]) -> str:
    """A median with its spread."""
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"
