"""Seeding through the API: a price, orgs with their grants, and every running job.

Owns: what is sent. All rows come from the server's own write path, so they are as in production.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gpucredits.core.money import format_credits
from gpucredits_bench.traffic.beating import Lease
from gpucredits_bench.traffic.exchange import ExchangeError, Line, Target
from gpucredits_bench.traffic.gating import set_gates
from gpucredits_bench.workload import (
    GPU_TYPE,
    GRANT,
    PRICE_PER_GPU_HOUR,
    WINDOW_S,
    Job,
    Workload,
    job_path,
    org_path,
    scopes,
)

BATCH = 500
LINES = 4


def seed(
    target: Target, workload: Workload, progress: Callable[[str], None], *, is_gated: bool = False
) -> list[Lease]:
    """Seed everything; the leases in the order in which the jobs report.

    All count their use from the last admission on, so that any of them may share a report.
    """
    by_org: dict[int, list[Job]] = defaultdict(list)
    for job in workload.jobs:
        by_org[job.org].append(job)
    lines = threading.local()
    opened: list[Line] = []
    leases: dict[int, Lease] = {}

    def seed_one(org: int) -> None:
        if not hasattr(lines, "own"):
            lines.own = Line(target)
            opened.append(lines.own)
        seed_org(lines.own, org)
        if is_gated:
            set_gates(lines.own, org)
        for first in range(0, len(by_org[org]), BATCH):
            leases.update(admit(lines.own, org, by_org[org][first : first + BATCH]))

    with Line(target) as line:
        seed_price(line)
    with ThreadPoolExecutor(LINES) as seeders:
        for done, _ in enumerate(seeders.map(seed_one, range(workload.orgs)), start=1):
            if done % max(workload.orgs // 5, 1) == 0:
                progress(f"seeding: {done:,} orgs, {len(leases):,} reservations")
    for line in opened:
        line.close()
    admitted_at = max(lease.admitted_at for lease in leases.values())
    return [
        Lease(lease.reservation_id, lease.rate, admitted_at)
        for lease in (leases[job.number] for job in workload.shuffled())
    ]


def seed_price(line: Line) -> None:
    """What a GPU costs."""
    price = {"gpu_type": GPU_TYPE, "credits_per_gpu_hour": format_credits(PRICE_PER_GPU_HOUR)}
    line.call("/v1/prices", price, key="bench-price")


def seed_org(line: Line, org: int) -> None:
    """An org with a grant, its project, and the person whose jobs run."""
    path = org_path(org)
    for scope in scopes(org):
        line.call("/v1/accounts", {"path": scope}, key=f"open-{scope.replace('/', '-')}")
    grant = {"account": path, "amount": format_credits(GRANT)}
    line.call("/v1/credits/issue", grant, key=f"grant-{path}")


def admit(line: Line, org: int, jobs: list[Job]) -> dict[int, Lease]:
    """Admit some jobs of one org, all or nothing."""
    items = [
        {
            "account": job_path(org),
            "job_id": f"job-{job.number}",
            "gpu_type": GPU_TYPE,
            "gpu_count": job.gpus,
            "node": f"node-{job.number % 1_000}",
            "window_seconds": WINDOW_S,
        }
        for job in jobs
    ]
    key = f"admit-{jobs[0].number}"
    answer = line.call("/v1/reservations:batch", {"items": items, "atomic": True}, key=key)
    now = time.monotonic()
    leases = {}
    for job, result in zip(jobs, answer["results"], strict=True):
        if "reservation" not in result:
            raise ExchangeError(f"a job was not admitted: {result}")
        lease_id = result["reservation"]["reservation_id"]
        leases[job.number] = Lease(lease_id, job.rate, now)
    return leases
