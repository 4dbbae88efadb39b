"""The world before the first job: accounts, list prices, grants, quotas and pools.

Owns: each tenant's funds and limits, drawn from the seed.
Must not: know single jobs; a workload says what each tenant wants in all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from gpucredits.client import Client
from gpucredits.simulation.workload import MILLI, Workload, org_of

MICROS: Final = 1_000_000
FUNDED_PERCENT: Final = (60, 130)  # of what all jobs of an org would cost
CAPACITY_PERCENT: Final = 60  # of the most GPUs of a type that would be used at once
QUOTA_ODDS: Final = 0.3
QUOTA_JOBS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The funds and limits of every tenant, and the capacity of every pool."""

    granted: dict[str, int]  # micro-credits, by org
    capacity: dict[str, int]  # whole GPUs, by type
    quotas: dict[str, int]  # concurrent jobs, by account


def open_world(client: Client, workload: Workload, *, seed: int, interval_s: int) -> Opening:
    """Set up a new server for a workload."""
    dice = random.Random(f"opening:{seed}")  # noqa: S311  # a simulation, not a secret
    for gpu_type, price in workload.prices.items():
        client.set_price(gpu_type, credits_text(price))
    opening = Opening(granted={}, capacity={}, quotas={})
    for path in _paths(workload):
        client.create_account(path)
        depth = path.count("/")
        if depth == 0:
            percent = dice.randint(*FUNDED_PERCENT)
            amount = max(MICROS, workload.demand(path) * percent // 100)
            client.issue(path, credits_text(amount))
            opening.granted[path] = amount
        elif depth == 2 and dice.random() < QUOTA_ODDS:
            client.set_quota(path, "concurrent_jobs", QUOTA_JOBS)
            opening.quotas[path] = QUOTA_JOBS
    for gpu_type in workload.gpu_types:
        opening.capacity[gpu_type] = _open_pool(client, workload, gpu_type, interval_s)
    return opening


def _open_pool(client: Client, workload: Workload, gpu_type: str, interval_s: int) -> int:
    """A pool too small for the peak, but large enough for every single job."""
    largest = max(job.milli_gpus for job in workload.jobs if job.gpu_type == gpu_type)
    wanted = max(largest, workload.peak(gpu_type) * CAPACITY_PERCENT // 100)
    capacity = -(-wanted // MILLI)
    # A preempted job hears of it with its next report, so its grace is longer than an interval.
    client.set_pool(gpu_type, capacity=capacity, policy={"grace_seconds": 2 * interval_s})
    return capacity


def _paths(workload: Workload) -> list[str]:
    """Every account with the accounts above it, parents first."""
    paths: dict[str, None] = {}
    for account in workload.accounts:
        org, project, user = org_of(account), account.rpartition("/")[0], account
        paths.update(dict.fromkeys((org, project, user)))
    return list(paths)


def credits_text(micros: int) -> str:
    """Micro-credits as a decimal number of credits."""
    whole, part = divmod(micros, MICROS)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".") if part else str(whole)
