"""The run of admissions: ours, two textbooks and a floor behind HTTP, in windows that alternate.

Owns: the order of the windows, and what is the same for all: one PostgreSQL and its durability, the
event loop, the HTTP parser, the load generator, the warm-up and the limits (none).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import asyncpg

from gpucredits.store.embedded.server import DATABASE, EmbeddedPostgres
from gpucredits_bench.contestants import admission_textbook, floor, same_rows
from gpucredits_bench.contestants.bare import bare_serving
from gpucredits_bench.contestants.server import (
    Server,
    Window,
    database_url,
    run_alone,
    run_load,
    serving,
    wal_position,
)
from gpucredits_bench.options import Progress
from gpucredits_bench.processes import Cost, cost_of
from gpucredits_bench.runs.admission_figures import (
    AdmissionFigures,
    Cell,
    Idle,
    Sample,
    admission_bars,
)
from gpucredits_bench.runs.gated import is_clean
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic import probe
from gpucredits_bench.traffic.admitting import PATH, reserve_body
from gpucredits_bench.traffic.exchange import Line
from gpucredits_bench.traffic.load import Spec
from gpucredits_bench.traffic.seeding import seed_org, seed_price

Mode = Literal["admissions", "batches"]
Name = Literal["ours", "statements", "calls", "floor"]
TEXTBOOKS: tuple[Literal["statements", "calls"], ...] = ("statements", "calls")
BARE: tuple[Literal["statements", "calls", "floor"], ...] = (*TEXTBOOKS, floor.DATABASE)
NAMES: tuple[Name, ...] = ("ours", *BARE)
BATCH_LINES = 8
ALONE_LINES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOptions:
    """The knobs of a run."""

    orgs: int = 100
    connections: tuple[int, ...] = (1, 8, 32, 128)
    windows: int = 5
    seconds: float = 2.0
    warm_up_s: float = 0.5
    folder: Path | None = None


class Contest:
    """The servers that are running, and the windows that each has had."""

    def __init__(self, servers: dict[Name, Server], options: AdmissionOptions) -> None:
        self._servers = servers
        self._options = options
        self._windows = 0

    def cell(self, name: str, connections: int, orgs: int, progress: Progress) -> Cell:
        """Windows of pairs, every contestant in turn; each round in the opposite order."""
        samples: dict[str, list[Sample]] = {each: [] for each in self._servers}
        for number in range(self._options.windows):
            for each in reversed(NAMES) if number % 2 else NAMES:
                samples[each].append(self.window(each, connections, orgs))
        cell = Cell(name=name, connections=connections, orgs=orgs, samples=samples)
        told = ", ".join(f"{each} {cell.median(each):,.0f}" for each in NAMES)
        progress(f"{name}: {told} pairs/s")
        return cell

    def window(
        self,
        name: Name,
        connections: int,
        orgs: int,
        mode: Mode = "admissions",
    ) -> Sample:
        """One window of load on one contestant."""
        self._windows += 1
        server = self._servers[name]
        spec = Spec(
            mode=mode,
            port=server.target.port,
            token=server.target.token,
            warm_up_s=self._options.warm_up_s,
            seconds=self._options.seconds,
            dispatchers=connections,
            orgs=orgs,
            name=f"window-{self._windows}",
        )
        window = run_load(server, spec, self._wal, self._cost_of(server))
        return sample_of(window)

    def _wal(self) -> int:
        return asyncio.run(wal_position(self._servers["ours"].database_url))

    def _cost_of(self, server: Server) -> Callable[[], Cost]:
        """What a contestant has cost: PostgreSQL runs below ours, for all of them."""
        ours = self._servers["ours"]
        return lambda: Cost(cost_of(server.pid).server_s, cost_of(ours.pid).postgres_s)


def sample_of(window: Window) -> Sample:
    """The figures of one window."""
    figures = window.figures
    done = max(figures.done, 1)
    return Sample(
        per_second=figures.per_second,
        reserve_p50_ms=figures.p50_s * 1e3,
        reserve_p95_ms=figures.p95_s * 1e3,
        server_cpu_us=window.server_cpu_s / done * 1e6,
        postgres_cpu_us=window.postgres_cpu_s / done * 1e6,
        wal_bytes=window.wal_bytes / done,
    )


def measure_admissions(options: AdmissionOptions, progress: Progress) -> AdmissionFigures:
    """The whole run: seed all, measure them in turn, verify all books."""
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        seed(folder, options.orgs)
        data_dir = folder / "data"
        with ExitStack() as stack:
            servers: dict[Name, Server] = {"ours": stack.enter_context(serving(folder))}
            for kind in BARE:
                url = database_url(data_dir, kind)
                servers[kind] = stack.enter_context(bare_serving(folder, kind, url))
            url = database_url(data_dir, same_rows.DATABASE_BEHIND_HTTP)
            bare = stack.enter_context(bare_serving(folder, "same_rows", url))
            asyncio.run(run_alone(servers["ours"].database_url, "VACUUM ANALYZE"))
            asyncio.run(run_alone(servers["ours"].database_url, "CHECKPOINT"))
            figures = measure_all(servers, bare, options, progress)
            balanced = [
                asyncio.run(admission_textbook.is_balanced(database_url(data_dir, kind)))
                for kind in TEXTBOOKS
            ]
        progress("verifying the books")
        figures.fdatasync_us = sync_us
        figures.verified = is_clean(folder, progress) and all(balanced)
    figures.bars = admission_bars(figures)
    return figures


def seed(folder: Path, orgs: int) -> None:
    """Seed ours through its API; then the others' databases, one of them a copy of ours."""
    with serving(folder) as server, Line(server.target) as line:
        seed_price(line)
        for org in range(orgs):
            seed_org(line, org)
            job_id = f"first-{org}"
            line.exchange(server.target.request(PATH, reserve_body(org, job_id), key=job_id))
    with EmbeddedPostgres(folder / "data") as postgres:
        asyncio.run(seed_others(folder / "data", postgres.dsn(), orgs))


async def seed_others(data_dir: Path, url: str, orgs: int) -> None:
    """Make the databases of the textbooks, of the floor and of the copied rows."""
    for name in (same_rows.DATABASE, same_rows.DATABASE_BEHIND_HTTP):
        copy = f"CREATE DATABASE {name} TEMPLATE {DATABASE}"
        await run_alone(database_url(data_dir, "postgres"), copy)
        connection = await asyncpg.connect(database_url(data_dir, name))
        await same_rows.create(connection)
        await connection.execute("VACUUM ANALYZE")
        await connection.close()
    for kind in TEXTBOOKS:
        await run_alone(url, f"CREATE DATABASE {kind}")
        connection = await asyncpg.connect(database_url(data_dir, kind))
        await admission_textbook.create(connection, orgs)
        await connection.close()
    await run_alone(url, f"CREATE DATABASE {floor.DATABASE}")
    connection = await asyncpg.connect(database_url(data_dir, floor.DATABASE))
    await floor.create(connection)
    await connection.close()


def measure_all(
    servers: dict[Name, Server], bare: Server, options: AdmissionOptions, progress: Progress
) -> AdmissionFigures:
    """Idle reserves first, then pairs, then batches."""
    contest = Contest(servers, options)
    idle = measure_idle(servers["ours"], bare, options)
    progress(
        f"idle: reserve p50 {listed_ms(idle.reserve)}, one call {listed_ms(idle.call)}, "
        f"the call behind HTTP {listed_ms(idle.call_behind_http)}"
    )
    cells = [
        contest.cell(f"{count} connections, {options.orgs} orgs", count, options.orgs, progress)
        for count in options.connections
    ]
    cells.append(contest.cell(f"{ALONE_LINES} connections, one org", ALONE_LINES, 1, progress))
    batches = [
        contest.window("ours", BATCH_LINES, options.orgs, "batches").per_second
        for _ in range(options.windows)
    ]
    return AdmissionFigures(idle=idle, cells=cells, batches_per_second=batches)


def measure_idle(ours: Server, bare: Server, options: AdmissionOptions) -> Idle:
    """A reserve, the call that writes its rows, and that call behind HTTP, in turns."""
    idle = Idle()
    url = database_url(ours.folder / "data", same_rows.DATABASE)
    for number in range(options.windows):
        name, seconds = f"idle-{number}", options.seconds
        reserves = probe.time_reserves(ours.target, orgs=options.orgs, seconds=seconds, name=name)
        behind = probe.time_reserves(
            bare.target, orgs=options.orgs, seconds=seconds, name=name, cancels=False
        )
        calls = same_rows.time_calls(url, seconds=seconds, name=name)
        idle.reserve.append(reserves.p50_s * 1e3)
        idle.call_behind_http.append(behind.p50_s * 1e3)
        idle.call.append(calls.p50_s * 1e3)
    return idle


def listed_ms(values: list[float]) -> str:
    """Times of all windows, the shortest first."""
    return " / ".join(f"{value:.2f}" for value in sorted(values)) + " ms"
