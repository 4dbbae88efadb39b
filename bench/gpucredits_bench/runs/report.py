"""The table for people: figures, ratios and bars."""

from __future__ import annotations

from gpucredits_bench.contestants.inprocess import InProcess
from gpucredits_bench.runs.figures import (
    OURS_PER_SECOND_MIN,
    RATIO_TO_TEXTBOOK_MIN,
    RESERVE_P95_MS_MAX,
    RESERVE_P95_RATIO_MAX,
    SMALL_REPORT_RATIO_MAX,
    Figures,
    Ours,
)

BAR_WIDTH = 40
MIB = 1024 * 1024


def table(figures: Figures) -> str:
    """Everything a run showed."""
    ours = figures.ours
    most = max(rate for _, rate in contestants(figures))
    lines = [
        "",
        (
            f"{ours.reservations:,} running reservations over {ours.orgs:,} orgs, durable "
            f"(one page to disk: {figures.fdatasync_us:,.0f} µs), all on this machine,"
            f" {'rules compiled' if figures.compiled else 'rules as plain Python'}"
        ),
        "",
        "heartbeats per second",
        *[
            f"  {name:<34} {rate:>10,.0f}  {drawn(rate, most)}"
            for name, rate in contestants(figures)
        ],
        "",
        *[f"  {name:<34} {value}" for name, value in [*spreads(figures), *details(ours)]],
        "",
        *[mark(promise, is_kept=kept) for promise, kept in promises(figures)],
    ]
    if figures.growth:
        lines += ["", *growth(figures.growth)]
    return "\n".join(lines)


def contestants(figures: Figures) -> list[tuple[str, float]]:
    """The medians of those that are compared."""
    best = {
        name: max(rates, key=rates.__getitem__)
        for name, rates in (
            ("statements", figures.textbook_by_connections),
            ("calls", figures.call_by_connections),
        )
    }
    return [
        (f"textbook, {best['statements']} connections", figures.textbook_per_second),
        (f"textbook as one call, {best['calls']}", figures.call_per_second),
        ("ours, through HTTP", figures.ours_per_second),
        ("ours, 8 beats a report", figures.ours.small_per_second),
        (f"COPY of the rows, {figures.copy_connections} connections", figures.copy_per_second),
    ]


def spreads(figures: Figures) -> list[tuple[str, str]]:
    """The slowest and the fastest window of each contestant."""
    return [
        (f"windows: {name}", f"{min(rates):,.0f} to {max(rates):,.0f} ({len(rates)})")
        for name, rates in figures.windows.items()
    ]


def mark(promise: str, *, is_kept: bool) -> str:
    """A promise, and whether it was kept."""
    return f"  {'kept  ' if is_kept else 'MISSED'}  {promise}"


def drawn(rate: float, most: float) -> str:
    """A bar as long as the rate."""
    return "█" * max(round(rate / most * BAR_WIDTH), 1)


def details(ours: Ours) -> list[tuple[str, str]]:
    """What else was measured."""
    return [
        ("a report of a node, p50 / p95", f"{ours.post_p50_ms:.1f} / {ours.post_p95_ms:.1f} ms"),
        (
            "  at half load",
            f"{ours.half_load_post_p50_ms:.1f} / {ours.half_load_post_p95_ms:.1f} ms",
        ),
        (
            "one reserve when idle, p50 / p95",
            f"{ours.reserve_idle_p50_ms:.2f} / {ours.reserve_idle_p95_ms:.2f} ms",
        ),
        (
            f"  at {ours.half_load_per_second:,.0f} heartbeats/s",
            f"{ours.reserve_loaded_p50_ms:.2f} / {ours.reserve_loaded_p95_ms:.2f} ms",
        ),
        (
            "8 beats every 15 ms, p50 / p95",
            f"{ours.small_report_p50_ms:.2f} / {ours.small_report_p95_ms:.2f} ms",
        ),
        ("admissions (reserve + settle)", f"{ours.admissions_per_second:,.0f} /s"),
        ("heartbeats in a commit", f"{ours.beats_per_commit:,.0f}"),
        ("log written for a heartbeat", f"{ours.wal_bytes_per_heartbeat:,.0f} bytes"),
        (
            "processor time for a heartbeat",
            (
                f"server {ours.server_cpu_us_per_heartbeat:.1f} µs, PostgreSQL "
                f"{ours.postgres_cpu_us_per_heartbeat:.1f} µs, generator "
                f"{ours.generator_cpu_us_per_heartbeat:.1f} µs"
            ),
        ),
        (
            "  with 8 beats a report",
            (
                f"server {ours.small_server_cpu_us_per_heartbeat:.1f} µs, PostgreSQL "
                f"{ours.small_postgres_cpu_us_per_heartbeat:.1f} µs"
            ),
        ),
        (
            "memory",
            (
                f"server {ours.server_memory_bytes / MIB:,.0f} MiB, PostgreSQL "
                f"{ours.postgres_memory_bytes / MIB:,.0f} MiB"
            ),
        ),
        ("answers read in full", f"{ours.beats_checked:,} beats, all as the formula says"),
    ]


def promises(figures: Figures) -> list[tuple[str, bool]]:
    """Each promise in words with its figure, and whether it was kept."""
    ours, kept = figures.ours, figures.bars
    return [
        (
            (
                f"{figures.ratio_to_textbook:.1f} x the textbook's best (at least "
                f"{RATIO_TO_TEXTBOOK_MIN:.0f}), {figures.ratio_to_call:.1f} x it as one call; "
                f"{figures.ratio_to_copy:.2f} x the raw limit"
            ),
            kept["ratio_to_textbook"],
        ),
        (
            (
                f"{figures.ours_per_second:,.0f} heartbeats/s (at least "
                f"{OURS_PER_SECOND_MIN:,.0f} on a quiet two-core machine)"
            ),
            kept["ours_per_second"],
        ),
        (
            (
                f"a reserve at half load takes {ours.reserve_loaded_p95_ms:.1f} ms at p95 (under "
                f"{RESERVE_P95_MS_MAX:.0f})"
            ),
            kept["reserve_p95"],
        ),
        (
            (
                f"that is {ours.reserve_p95_ratio:.1f} x its idle p95 (under "
                f"{RESERVE_P95_RATIO_MAX:.0f})"
            ),
            kept["reserve_p95_ratio"],
        ),
        (
            (
                f"a report of 8 heartbeats every 15 ms takes {ours.small_report_ratio:.1f} x an "
                f"idle reserve at p50 (at most {SMALL_REPORT_RATIO_MAX:.0f})"
            ),
            kept["small_report_ratio"],
        ),
        ("the books of the benched database verify", kept["verified"]),
    ]


def growth(sizes: list[Ours]) -> list[str]:
    """The same at several sizes, side by side."""
    return [
        "growth",
        "  reservations  heartbeats/s  reserve p95 ms  admissions/s  WAL B/hb  server MiB",
        *[
            f"  {ours.reservations:>12,}  {ours.ours_per_second:>12,.0f}"
            f"  {ours.reserve_loaded_p95_ms:>14.1f}  {ours.admissions_per_second:>12,.0f}"
            f"  {ours.wal_bytes_per_heartbeat:>8,.0f}  {ours.server_memory_bytes / MIB:>10,.0f}"
            for ours in sizes
        ],
    ]


def listing(alone: InProcess) -> str:
    """What the ledger did without HTTP."""
    return "\n".join(
        [
            f"{alone.reservations:,} running reservations over {alone.orgs:,} orgs, without HTTP",
            f"  heartbeats per second            {alone.in_process_per_second:,.0f}",
            (
                f"  a call, p50 / p95                {alone.call_p50_ms:.1f} / "
                f"{alone.call_p95_ms:.1f} ms"
            ),
            f"  heartbeats in a commit           {alone.beats_per_commit:,.0f}",
            (
                f"  processor time for a heartbeat   {alone.client_cpu_us_per_heartbeat:.1f} µs "
                "besides PostgreSQL"
            ),
        ]
    )
