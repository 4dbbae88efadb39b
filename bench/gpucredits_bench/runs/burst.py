"""One tenant bursts: what everybody else notices of it, in windows that alternate in one run.

Owns: the tenants and their limits, the order of the windows, and the figures. Polite orgs admit
and settle jobs by the clock; in every other window a hostile org offers ten times as many as all
of them together. It has the limits that everybody has.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpucredits_bench.contestants.server import (
    Server,
    expect,
    generating,
    last_line,
    run_alone,
    serving,
)
from gpucredits_bench.options import Progress
from gpucredits_bench.runs import gated
from gpucredits_bench.runs.burst_figures import BurstFigures, Crowd, burst_bars
from gpucredits_bench.runs.workplace import time_syncs, workplace
from gpucredits_bench.traffic import crowd
from gpucredits_bench.traffic.admitting import PATH
from gpucredits_bench.traffic.crowd import Spec, Tenant
from gpucredits_bench.traffic.exchange import ExchangeError, Line
from gpucredits_bench.traffic.load import COUNTED, COUNTING, quantile
from gpucredits_bench.traffic.seeding import seed_org, seed_price
from gpucredits_bench.workload import org_path, scopes

ORDER = ("without", "with", "with", "without")
WARM_UP_S = 1.0
POLITE_LINES = 64
HOSTILE_LINES = 48
JOBS_AT_ONCE = 20
QUOTAS = [
    {"dimension": "concurrent_jobs", "limit": str(JOBS_AT_ONCE)},
    {"dimension": "concurrent_gpus", "limit": str(JOBS_AT_ONCE)},
    {"dimension": "credits_per_window", "limit": "1000000", "calendar": "day"},
]
RATE_LIMIT = {
    "capacity": "800",
    "refill_per_hour": "100000",
}  # credits: ten jobs, then one a second
LAST_SEQ = 1_000_000
REQUESTS_PER_SECOND = 20  # of one org, and four seconds' worth at once


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstOptions:
    """The knobs of a run."""

    orgs: int = 20
    jobs_per_second: float = 40.0  # of all polite orgs together
    factor: float = 10.0
    seconds: float = 10.0
    folder: Path | None = None


@dataclass(slots=True)
class Party:
    """What was answered in all windows of one kind."""

    windows: list[crowd.Figures] = field(default_factory=list)
    hostile: list[crowd.Figures] = field(default_factory=list)


def measure_burst(options: BurstOptions, progress: Progress) -> BurstFigures:
    """The whole run."""
    with workplace(options.folder) as folder:
        sync_us = time_syncs(folder)
        progress(f"one durable write of a page takes {sync_us:,.0f} µs here")
        parties = {name: Party() for name in ORDER}
        with serving(folder, "--org-requests-per-second", str(REQUESTS_PER_SECOND)) as server:
            tenants = seed(server, options.orgs + 1)
            asyncio.run(run_alone(server.database_url, "VACUUM ANALYZE"))
            for number, name in enumerate(ORDER):
                run_window(options, server, tenants, parties[name], f"{name}-{number}")
                p95_ms = quantile(sorted(parties[name].windows[-1].latencies_s), 0.95) * 1e3
                progress(f"{name} the hostile org: p95 {p95_ms:.1f} ms")
        progress("verifying the books")
        verified = gated.is_clean(folder, progress)
    return figures_of(options, parties, sync_us, verified=verified)


def seed(server: Server, orgs: int) -> list[Tenant]:
    """Orgs with credits, the same limits in three scopes, and a key of their own."""
    tenants = []
    with Line(server.target) as line:
        seed_price(line)
        for org in range(orgs):
            seed_org(line, org)
            for scope in scopes(org):
                path, name = f"/v1/accounts/{scope}", scope.replace("/", "-")
                line.call(f"{path}/quotas", {"quotas": QUOTAS}, key=f"quotas-{name}", method="PUT")
                line.call(f"{path}/rate-limit", RATE_LIMIT, key=f"rate-{name}", method="PUT")
            wanted = {"role": "operator", "scope": org_path(org)}
            answer = line.call("/v1/keys", wanted, key=f"key-{org}")
            tenants.append(Tenant(org, answer["secret"]))
    return tenants


def run_window(
    options: BurstOptions, server: Server, tenants: list[Tenant], party: Party, name: str
) -> None:
    """One window of the polite orgs, with the hostile one beside them if its name says so."""
    polite = Spec(
        mode="polite",
        port=server.target.port,
        tenants=tenants[1:],
        jobs_per_second=options.jobs_per_second,
        warm_up_s=WARM_UP_S,
        seconds=options.seconds,
        lines=POLITE_LINES,
        name=f"polite-{name}",
    )
    if name.startswith("without"):
        party.windows.append(run_polite(server, polite))
        return
    hostile = msgspec.structs.replace(
        polite,
        mode="hostile",
        tenants=tenants[:1],
        jobs_per_second=options.jobs_per_second * options.factor,
        seconds=options.seconds + WARM_UP_S,
        lines=HOSTILE_LINES,
        name=f"hostile-{name}",
    )
    with generating(server, hostile, "crowd", "hostile") as process:
        expect(process, COUNTING)
        party.windows.append(run_polite(server, polite))
        expect(process, COUNTED)
        party.hostile.append(answered(process))
    with Line(server.target) as line:  # so that the next window begins as this one did
        for lease in party.hostile[-1].leases:
            number = lease.reservation_id
            last = {"seq": LAST_SEQ, "used_ms": lease.used_ms(time.monotonic())}
            line.call(f"{PATH}/{number}:settle", last, key=f"settle-{number}")


def run_polite(server: Server, spec: Spec) -> crowd.Figures:
    """A window of the polite orgs."""
    with generating(server, spec, "crowd", "polite") as process:
        expect(process, COUNTING)
        expect(process, COUNTED)
        return answered(process)


def answered(process: subprocess.Popen[bytes]) -> crowd.Figures:
    """What a generator was answered; a problem ends the run."""
    figures = msgspec.json.decode(last_line(process), type=crowd.Figures)
    if figures.problems:
        raise ExchangeError("; ".join(figures.problems[:3]))
    return figures


def figures_of(
    options: BurstOptions,
    parties: dict[str, Party],
    sync_us: float,
    *,
    verified: bool,
) -> BurstFigures:
    """All figures of a run."""
    alone, beside = crowd_of(parties["without"].windows), crowd_of(parties["with"].windows)
    hostile = parties["with"].hostile
    figures = BurstFigures(
        fdatasync_us=sync_us,
        orgs=options.orgs,
        jobs_per_second=options.jobs_per_second,
        factor=options.factor,
        without=alone,
        beside=beside,
        p95_ratio=beside.p95_ms / alone.p95_ms,
        share_difference_max=share_difference(alone.admitted_by_org, beside.admitted_by_org),
        hostile_offered=sum(each.offered for each in hostile),
        hostile_absorbed=dict(sum((Counter(each.answers) for each in hostile), Counter())),
        hostile_beats=dict(sum((Counter(each.beats) for each in hostile), Counter())),
        verified=verified,
    )
    figures.bars = burst_bars(figures)
    return figures


def crowd_of(windows: list[crowd.Figures]) -> Crowd:
    """What the polite orgs saw in all windows of one kind."""
    ordered = sorted(latency for window in windows for latency in window.latencies_s)
    admitted = sum((Counter(window.admitted_by_org) for window in windows), Counter())
    return Crowd(
        offered=sum(window.offered for window in windows),
        admitted=sum(admitted.values()),
        answers=dict(sum((Counter(window.answers) for window in windows), Counter())),
        admitted_by_org={org_path(org): jobs for org, jobs in sorted(admitted.items())},
        p50_ms=quantile(ordered, 0.5) * 1e3,
        p95_ms=quantile(ordered, 0.95) * 1e3,
        p99_ms=quantile(ordered, 0.99) * 1e3,
        p95_ms_by_window=[quantile(sorted(w.latencies_s), 0.95) * 1e3 for w in windows],
    )


def share_difference(alone: dict[str, int], beside: dict[str, int]) -> int:
    """By how many jobs the org that noticed most was better or worse off beside the hostile one."""
    orgs = alone.keys() | beside.keys()
    return max((abs(alone.get(org, 0) - beside.get(org, 0)) for org in orgs), default=0)
