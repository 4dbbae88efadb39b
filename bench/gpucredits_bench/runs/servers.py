"""The run of several servers: what orgs cost that meet another server at every request.

Owns: two servers on one database, and windows that alternate: one server alone, each org pinned to
one server, and every org scattered over both. All have the same connections and the same orgs.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

from gpucredits.compiled import is_compiled
from gpucredits.store.embedded.server import EmbeddedPostgres
from gpucredits_bench.contestants import books
from gpucredits_bench.contestants.server import (
    Server,
    expect,
    figures_of,
    generating,
    run_alone,
    serving,
)
from gpucredits_bench.options import Progress
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic.exchange import ExchangeError, Line
from gpucredits_bench.traffic.load import COUNTED, COUNTING, Spec
from gpucredits_bench.traffic.seeding import seed_org, seed_price

Way = Literal["one", "pinned", "scattered"]
WAYS: tuple[Way, ...] = ("one", "pinned", "scattered")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersOptions:
    """The knobs of a run."""

    orgs: int = 100
    connections: int = 32
    windows: int = 5
    seconds: float = 2.0
    warm_up_s: float = 0.5
    folder: Path | None = None


class ServersFigures(msgspec.Struct, kw_only=True):
    """Pairs of a reserve and a settle per second, window by window."""

    fdatasync_us: float
    orgs: int
    connections: int
    per_second: dict[str, list[float]]
    verified: bool
    compiled: bool = msgspec.field(default_factory=is_compiled)

    def ratios(self, way: str) -> list[float]:
        """A way to pinned orgs, round by round."""
        pairs = zip(self.per_second[way], self.per_second["pinned"], strict=True)
        return [rate / pinned for rate, pinned in pairs]


def measure_servers(options: ServersOptions, progress: Progress) -> ServersFigures:
    """The whole run: seed, measure the ways in turn, verify the books."""
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        with EmbeddedPostgres(folder / "database") as postgres:
            with ExitStack() as stack:
                servers = [
                    replace(
                        stack.enter_context(serving(folder, "--database-url", postgres.dsn())),
                        database_url=postgres.dsn(),
                    )
                    for _ in range(2)
                ]
                seed(servers[0], options.orgs)
                rates = measure_ways(servers, options, progress)
            progress("verifying the books")
            verification = asyncio.run(books.verify(postgres.dsn()))
            for finding in verification.findings:
                progress(f"BROKEN: {finding.claim}: {finding.rows[:3]}")
    return ServersFigures(
        fdatasync_us=sync_us,
        orgs=options.orgs,
        connections=options.connections,
        per_second=rates,
        verified=verification.is_clean,
    )


def seed(server: Server, orgs: int) -> None:
    """Make the orgs through the API."""
    with Line(server.target) as line:
        seed_price(line)
        for org in range(orgs):
            seed_org(line, org)
    asyncio.run(run_alone(server.database_url, "VACUUM ANALYZE"))


def measure_ways(
    servers: list[Server], options: ServersOptions, progress: Progress
) -> dict[str, list[float]]:
    """Windows of every way in turn; each round in the opposite order."""
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(options.windows):
        for way in reversed(WAYS) if number % 2 else WAYS:
            rates[way].append(window(servers, options, way, number))
    for way in WAYS:
        progress(f"{way}: {median(rates[way]):,.0f} pairs/s")
    return rates


def window(servers: list[Server], options: ServersOptions, way: Way, number: int) -> float:
    """One window; each server that takes part has a load generator of its own."""
    taking = servers[:1] if way == "one" else servers
    with ExitStack() as stack:
        processes = []
        for place, server in enumerate(taking):
            name = f"{way}-{number}-{place}"
            spec = Spec(
                mode="admissions",
                port=server.target.port,
                token=server.target.token,
                warm_up_s=options.warm_up_s,
                seconds=options.seconds,
                dispatchers=options.connections // len(taking),
                orgs=options.orgs,
                first_org=place if way == "pinned" else 0,
                org_step=len(taking) if way == "pinned" else 1,
                name=name,
            )
            processes.append(stack.enter_context(generating(server, spec, name=name)))
        for line in (COUNTING, COUNTED):
            for process in processes:
                expect(process, line)
        figures = [figures_of(process) for process in processes]
    problems = [problem for each in figures for problem in each.problems]
    if problems:
        raise ExchangeError("; ".join(problems))
    return sum(each.per_second for each in figures)


def servers_table(figures: ServersFigures) -> str:
    """The figures for people."""
    lines = [
        f"{figures.orgs} orgs, {figures.connections} connections, reserve and settle",
        f"{'way':<28}{'pairs/s':>10}{'to pinned':>12}{'spread':>16}",
    ]
    told = {
        "one": "one server",
        "pinned": "two servers, orgs pinned",
        "scattered": "two servers, orgs scattered",
    }
    for way in WAYS:
        ratios = figures.ratios(way)
        lines.append(
            f"{told[way]:<28}{median(figures.per_second[way]):>10,.0f}{median(ratios):>11.2f}x"
            f"{min(ratios):>9.2f} to {max(ratios):.2f}"
        )
    lines.append(f"books verified: {'yes' if figures.verified else 'NO'}")
    return "\n".join(lines)
