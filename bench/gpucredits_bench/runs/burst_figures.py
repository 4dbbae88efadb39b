"""The figures of a run with a hostile tenant, their promises, and the table for people.

Owns: their names, units and bars. Times are milliseconds, from when a job was due to its answer.
"""

from __future__ import annotations

import msgspec

from gpucredits.compiled import is_compiled
from gpucredits_bench.runs.report import mark

P95_RATIO_MAX = 2.0
SHARE_DIFFERENCE_MAX = 2  # jobs: one for the edges of each of the two windows
MEANING = {
    "admitted": "admitted, as its limits let it",
    "quota_exceeded": "quota",
    "rate_limited": "credit rate limit",
    "insufficient_credits": "credits",
    "fair_share": "fair share",
    "request_limit": "limit on requests, before anything was read (429)",
    "queue_full": "bound of its queue (503)",
}


class Crowd(msgspec.Struct, kw_only=True):
    """What the polite orgs saw in all windows of one kind."""

    offered: int
    admitted: int
    answers: dict[str, int]
    admitted_by_org: dict[str, int]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p95_ms_by_window: list[float]


class BurstFigures(msgspec.Struct, kw_only=True):
    """A whole run: polite orgs ``without`` the hostile one and ``beside`` it."""

    fdatasync_us: float
    orgs: int
    jobs_per_second: float
    factor: float
    without: Crowd
    beside: Crowd
    p95_ratio: float
    share_difference_max: int
    hostile_offered: int
    hostile_absorbed: dict[str, int]
    hostile_beats: dict[str, int]
    verified: bool
    compiled: bool = msgspec.field(default_factory=is_compiled)
    bars: dict[str, bool] = {}


def burst_bars(figures: BurstFigures) -> dict[str, bool]:
    """Which of the promises this run kept."""
    return {
        "p95_ratio": figures.p95_ratio <= P95_RATIO_MAX,
        "shares": figures.share_difference_max <= SHARE_DIFFERENCE_MAX,
        "verified": figures.verified,
    }


def burst_table(figures: BurstFigures) -> str:
    """What the others noticed, and what became of the hostile load."""
    kept = figures.bars
    return "\n".join(
        [
            "",
            (
                f"{figures.orgs} polite orgs admit and settle {figures.jobs_per_second:g} jobs a "
                f"second together; a hostile one offers {figures.factor:g} times that in bursts "
                f"(one page to disk: {figures.fdatasync_us:,.0f} µs)"
            ),
            "",
            "polite admissions           offered  admitted    p50 ms    p95 ms    p99 ms",
            line("without the hostile org", figures.without),
            line("beside it", figures.beside),
            "",
            f"what became of {figures.hostile_offered:,} hostile jobs",
            *[
                f"  {jobs:>9,}  {MEANING.get(name, name)}"
                for name, jobs in sorted(figures.hostile_absorbed.items(), key=lambda x: -x[1])
            ],
            *[
                f"  {beats:>9,}  heartbeats: {name}"
                for name, beats in sorted(figures.hostile_beats.items(), key=lambda x: -x[1])
            ],
            "",
            mark(
                f"polite p95 is {figures.p95_ratio:.2f} x that without it (at most "
                f"{P95_RATIO_MAX:g})",
                is_kept=kept["p95_ratio"],
            ),
            mark(
                f"no polite org's admitted jobs differ by more than "
                f"{figures.share_difference_max} (at most {SHARE_DIFFERENCE_MAX}, one a window)",
                is_kept=kept["shares"],
            ),
            mark("the books verify", is_kept=kept["verified"]),
        ]
    )


def line(name: str, crowd: Crowd) -> str:
    """One row of the table."""
    return (
        f"  {name:<25} {crowd.offered:>7,}  {crowd.admitted:>8,}  {crowd.p50_ms:>8.2f}"
        f"  {crowd.p95_ms:>8.2f}  {crowd.p99_ms:>8.2f}"
    )
