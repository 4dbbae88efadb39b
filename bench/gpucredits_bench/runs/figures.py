"""The figures of a run: what is printed for scripts, and what the table is made from.

Owns: their names, units and bars. Rates are per second, times are milliseconds.
"""

from __future__ import annotations

import msgspec

from gpucredits.compiled import is_compiled

RATIO_TO_TEXTBOOK_MIN = 12.0
OURS_PER_SECOND_MIN = 35_000.0
RESERVE_P95_MS_MAX = 10.0
RESERVE_P95_RATIO_MAX = 6.0
SMALL_REPORT_RATIO_MAX = 2.0
RATIO_GATED_MIN = 0.70
GATED_PER_SECOND_MIN = 28_000.0


class Ours(msgspec.Struct, kw_only=True):
    """What the server did at one size."""

    reservations: int
    orgs: int
    seed_seconds: float
    ours_per_second: float
    small_per_second: float
    small_server_cpu_us_per_heartbeat: float
    small_postgres_cpu_us_per_heartbeat: float
    post_p50_ms: float
    post_p95_ms: float
    beats_checked: int
    beats_per_commit: float
    wal_bytes_per_heartbeat: float
    server_cpu_us_per_heartbeat: float
    postgres_cpu_us_per_heartbeat: float
    generator_cpu_us_per_heartbeat: float
    server_memory_bytes: int
    postgres_memory_bytes: int
    half_load_per_second: float
    half_load_post_p50_ms: float
    half_load_post_p95_ms: float
    reserve_idle_p50_ms: float
    reserve_idle_p95_ms: float
    small_report_p50_ms: float
    small_report_p95_ms: float
    reserve_loaded_p50_ms: float
    reserve_loaded_p95_ms: float
    reserve_samples: int
    admissions_per_second: float

    @property
    def reserve_p95_ratio(self) -> float:
        """How much slower a reserve is at half load than on an idle server."""
        return self.reserve_loaded_p95_ms / self.reserve_idle_p95_ms

    @property
    def small_report_ratio(self) -> float:
        """How long a report of 8 heartbeats every 15 ms takes, in idle reserves at p50."""
        return self.small_report_p50_ms / self.reserve_idle_p50_ms


class Figures(msgspec.Struct, kw_only=True):
    """A whole run; rates of contestants are medians of their windows."""

    fdatasync_us: float
    textbook_by_connections: dict[str, float]
    call_by_connections: dict[str, float]
    textbook_per_second: float
    call_per_second: float
    ours_per_second: float
    copy_per_second: float
    copy_connections: int
    ratio_to_textbook: float
    ratio_to_call: float
    ratio_to_copy: float
    windows: dict[str, list[float]]  # of each contestant, in the order of the rounds
    verified: bool
    ours: Ours
    compiled: bool = msgspec.field(default_factory=is_compiled)
    growth: list[Ours] = []
    bars: dict[str, bool] = {}


def bars(figures: Figures) -> dict[str, bool]:
    """Which of the promises this run kept."""
    ours = figures.ours
    return {
        "ratio_to_textbook": figures.ratio_to_textbook >= RATIO_TO_TEXTBOOK_MIN,
        "ours_per_second": figures.ours_per_second >= OURS_PER_SECOND_MIN,
        "reserve_p95": ours.reserve_loaded_p95_ms < RESERVE_P95_MS_MAX,
        "reserve_p95_ratio": ours.reserve_p95_ratio < RESERVE_P95_RATIO_MAX,
        "small_report_ratio": ours.small_report_ratio <= SMALL_REPORT_RATIO_MAX,
        "verified": figures.verified,
    }


class Side(msgspec.Struct, kw_only=True):
    """What one of two contestants did over all its windows; latencies are its slowest window's."""

    seed_seconds: float
    per_second: float
    per_second_by_window: list[float]
    post_p50_ms: float
    post_p95_ms: float
    beats_checked: int
    wal_bytes_per_heartbeat: float
    server_cpu_us_per_heartbeat: float
    postgres_cpu_us_per_heartbeat: float
    generator_cpu_us_per_heartbeat: float
    verified: bool


class GatedFigures(msgspec.Struct, kw_only=True):
    """A run without limits and with all of them."""

    fdatasync_us: float
    reservations: int
    orgs: int
    limits: int
    ours_per_second: float
    gated_per_second: float
    ratio_gated: float
    verified: bool
    ours: Side
    gated: Side
    compiled: bool = msgspec.field(default_factory=is_compiled)
    bars: dict[str, bool] = {}


def gated_bars(figures: GatedFigures) -> dict[str, bool]:
    """Which of the promises about gates this run kept."""
    return {
        "ratio_gated": figures.ratio_gated >= RATIO_GATED_MIN,
        "gated_per_second": figures.gated_per_second >= GATED_PER_SECOND_MIN,
        "verified": figures.verified,
    }
