"""The table for people of a run with and without gates."""

from __future__ import annotations

from gpucredits_bench.runs.figures import GATED_PER_SECOND_MIN, RATIO_GATED_MIN, GatedFigures, Side
from gpucredits_bench.runs.report import drawn, mark


def gated_table(figures: GatedFigures) -> str:
    """Both contestants, what each heartbeat cost them, and the promises."""
    most = max(figures.ours_per_second, figures.gated_per_second)
    sides = [("without gates", figures.ours), ("all gates on", figures.gated)]
    kept = figures.bars
    return "\n".join(
        [
            "",
            (
                f"{figures.reservations:,} running reservations over {figures.orgs:,} orgs, durable"
                f" (one page to disk: {figures.fdatasync_us:,.0f} µs), all on this machine,"
                f" {'rules compiled' if figures.compiled else 'rules as plain Python'};"
                f" {figures.limits:,} limits in three scopes"
            ),
            "",
            "heartbeats per second",
            *[
                f"  {name:<16} {side.per_second:>10,.0f}  {drawn(side.per_second, most)}"
                for name, side in sides
            ],
            "",
            *[line for name, side in sides for line in details(name, side)],
            "",
            mark(
                f"{figures.ratio_gated:.2f} of the rate without gates (at least "
                f"{RATIO_GATED_MIN:.2f})",
                is_kept=kept["ratio_gated"],
            ),
            mark(
                f"{figures.gated_per_second:,.0f} heartbeats/s with all gates on (at least "
                f"{GATED_PER_SECOND_MIN:,.0f} on a quiet two-core machine)",
                is_kept=kept["gated_per_second"],
            ),
            mark("the books of both databases verify", is_kept=kept["verified"]),
        ]
    )


def details(name: str, side: Side) -> list[str]:
    """What else was measured of one contestant."""
    windows = ", ".join(f"{rate:,.0f}" for rate in side.per_second_by_window)
    return [
        f"{name}: windows of {windows} heartbeats/s",
        f"  a report of a node, p50 / p95  {side.post_p50_ms:.1f} / {side.post_p95_ms:.1f} ms",
        (
            f"  processor time for a heartbeat server {side.server_cpu_us_per_heartbeat:.1f} µs, "
            f"PostgreSQL {side.postgres_cpu_us_per_heartbeat:.1f} µs, generator "
            f"{side.generator_cpu_us_per_heartbeat:.1f} µs"
        ),
        f"  log written for a heartbeat    {side.wal_bytes_per_heartbeat:,.0f} bytes",
        f"  answers read in full           {side.beats_checked:,} beats",
    ]
