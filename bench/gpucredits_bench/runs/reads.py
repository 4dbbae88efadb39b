"""Reads of an org with a long history: how long each takes, seen from beside the server.

Owns: which reads are timed, how often, and the bar that each has to keep.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from gpucredits_bench import processes
from gpucredits_bench.contestants import books
from gpucredits_bench.contestants.server import serving
from gpucredits_bench.runs.workplace import workplace
from gpucredits_bench.traffic.exchange import Line
from gpucredits_bench.traffic.load import quantile
from gpucredits_bench.traffic.long_history import (
    DAY_S,
    ORG,
    Past,
    load_past,
    open_accounts,
    pass_time,
    project,
)

BAR_MS = 15.0
WARM_UP = 5
DAY_US = DAY_S * 1_000_000
HALF_DAY_US = DAY_US // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How long the history is, and how often each read is repeated."""

    entries: int
    leases: int
    times: int
    verifies: bool = False
    folder: Path | None = None


class ReadFigures(msgspec.Struct, frozen=True):
    """One read: what it asks for, and the quantiles of its times in milliseconds."""

    name: str
    p50_ms: float
    p95_ms: float
    cpu_ms: float  # processor time of server and PostgreSQL together, on average
    rows: int

    @property
    def keeps_bar(self) -> bool:
        """Whether it is as quick as each read has to be."""
        return self.p95_ms <= BAR_MS


class ReadsFigures(msgspec.Struct, frozen=True):
    """All reads, and what they read from."""

    entries: int
    leases: int
    live: int
    reads: list[ReadFigures]
    verified: bool | None = None  # None: not asked for


def measure_reads(options: ReadOptions, progress: Callable[[str], None]) -> ReadsFigures:
    """Load a history, time every read, and verify the books if that was asked for."""
    with workplace(options.folder) as folder, serving(folder, "--test-clock") as server:
        progress("opening accounts")
        open_accounts(server.target)
        pass_time(server.target)
        past = asyncio.run(
            load_past(
                server.database_url,
                leases=options.leases,
                entries=options.entries,
                progress=progress,
            )
        )
        figures = []
        with Line(server.target) as line:
            for name, path in reads_of(past).items():
                figures.append(time_read(line, server.pid, name, path, options.times))
                progress(f"{name}: p95 {figures[-1].p95_ms:.1f} ms")
        verified = None
        if options.verifies:
            progress("verifying the books")
            verified = not asyncio.run(books.verify(server.database_url)).findings
    return ReadsFigures(past.entries, past.leases, past.live, figures, verified)


def reads_of(past: Past) -> dict[str, str]:
    """Every read by name: its path with its query."""
    org, team, person = ORG, project(3), f"{project(3)}/u4"
    midday = past.since_us // DAY_US * DAY_US + 40 * DAY_US + HALF_DAY_US
    then, later = instant(midday), instant(midday + 10 * DAY_US)
    found = {
        "accounts, a page": asked("/v1/accounts", under=org, limit=100),
        "balance": asked(f"/v1/accounts/{org}/balance"),
        "balance of the tree": asked(f"/v1/accounts/{org}/balance", tree="true"),
        "balance at a past instant": asked(f"/v1/accounts/{team}/balance", at=then),
        "balance of the tree then": asked(f"/v1/accounts/{org}/balance", tree="true", at=then),
        "reservations, latest": asked("/v1/reservations", account=org, tree="true"),
        "reservations of a project": asked("/v1/reservations", account=team, tree="true"),
        "reservations of a person": asked("/v1/reservations", account=person),
        "reservations, none": asked("/v1/reservations", account=f"{project(0)}/idle"),
        "reservations, settled (none)": asked(
            "/v1/reservations", account=org, tree="true", state="settled"
        ),
        "reservations that run": asked(
            "/v1/reservations", account=org, tree="true", state="active"
        ),
        "reservations with a label (none)": asked(
            "/v1/reservations", account=org, tree="true", metadata="team=none"
        ),
        "reservations of a node": asked(
            "/v1/reservations", account=org, tree="true", node="node-7"
        ),
        "entries, latest": asked("/v1/entries", account=org, tree="true"),
        "entries of a person (none)": asked("/v1/entries", account=person),
        "entries until then": asked("/v1/entries", account=org, tree="true", until=then),
        "entries until then, settled": asked(
            "/v1/entries", account=org, tree="true", until=then, type="settle"
        ),
        "entries of a job": asked("/v1/entries", account=org, tree="true", job_id="job-41"),
        "grants": asked("/v1/grants", account=org, tree="true"),
        "transfers by time (none)": asked(
            "/v1/transfers", account=org, tree="true", since=then, until=later
        ),
    }
    for by in ("job", "account", "gpu_type", "day"):
        found[f"usage by {by}"] = asked(f"/v1/accounts/{org}/usage", by=by)
        found[f"usage by {by} of a project"] = asked(f"/v1/accounts/{team}/usage", by=by)
    found["usage of a person"] = asked(f"/v1/accounts/{person}/usage", by="account")
    found["usage between two middays"] = asked(
        f"/v1/accounts/{org}/usage", by="account", since=then, until=later
    )
    return found


def asked(path: str, **query: str | int) -> str:
    """A path with its query."""
    return f"{quote(path)}?{urlencode(query)}" if query else quote(path)


def instant(at_us: int) -> str:
    """As RFC 3339 has it."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat().replace("+00:00", "Z")


def time_read(line: Line, pid: int, name: str, path: str, times: int) -> ReadFigures:
    """Ask again and again, one at a time; the first few do not count."""
    for _ in range(WARM_UP):
        answer = line.call(path, {}, method="GET")
    rows = sum(len(value) for value in answer.values() if isinstance(value, list))
    taken = []
    before = processes.cost_of(pid)
    for _ in range(times):
        started = time.perf_counter()
        line.call(path, {}, method="GET")
        taken.append((time.perf_counter() - started) * 1e3)
    after = processes.cost_of(pid)
    used = after.server_s + after.postgres_s - before.server_s - before.postgres_s
    taken.sort()
    return ReadFigures(name, quantile(taken, 0.5), quantile(taken, 0.95), used / times * 1e3, rows)


def reads_table(figures: ReadsFigures) -> str:
    """The figures for people."""
    lines = [
        f"{figures.entries:,} entries, {figures.leases:,} leases in one org, {figures.live:,} run",
        "",
        f"{'read':<36}{'rows':>6}{'p50 ms':>9}{'p95 ms':>9}{'cpu ms':>9}",
    ]
    for each in figures.reads:
        mark = "" if each.keeps_bar else f"  over {BAR_MS:.0f} ms"
        times = f"{each.p50_ms:>9.1f}{each.p95_ms:>9.1f}{each.cpu_ms:>9.1f}"
        lines.append(f"{each.name:<36}{each.rows:>6}{times}{mark}")
    slow = sum(not each.keeps_bar for each in figures.reads)
    lines += ["", f"{slow} of {len(figures.reads)} reads over {BAR_MS:.0f} ms at p95"]
    if figures.verified is not None:
        lines.append(f"the books {'verify' if figures.verified else 'do NOT verify'}")
    return "\n".join(lines)
