"""Workloads: tenants, and jobs that ask for GPUs at given times; made up from a seed.

Owns: the shapes of jobs and tenants, how jobs fall to tenants, and the made-up workload.
Must not: talk to a server.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

HOUR_S: Final = 3_600
MILLI: Final = 1_000  # thousandths of a GPU
ORGS_MAX: Final = 1_000
JOBS_MAX: Final = 1_000_000
PROJECTS: Final = ("research", "serving")
USERS: Final = ("ada", "lin", "sam")

SHAPES: Final = (  # (GPU type, thousandths of GPUs, how often)
    ("h100", 8_000, 10),
    ("h100", 4_000, 10),
    ("h100", 1_000, 25),
    ("a100", 2_000, 15),
    ("a100", 1_000, 20),
    ("a100", 500, 12),
    ("a100", 250, 8),
)
PRICES: Final = {"h100": 4_000_000, "a100": 2_000_000}  # micro-credits per GPU-hour
MEDIAN_RUN_S: Final = 45 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """A job: its request, its arrival, and the run time of each of its attempts."""

    name: str
    account: str
    gpu_type: str
    milli_gpus: int
    arrives_s: int  # since the start of the workload
    attempts_s: tuple[int, ...]
    waits: bool = False  # whether the job waits in the queue
    leaves_s: int | None = None  # when the job gives up waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs in the order of their arrival, the list prices, and the source of both."""

    source: str
    jobs: tuple[SimulatedJob, ...]
    prices: dict[str, int]  # micro-credits per GPU-hour, by GPU type

    @property
    def accounts(self) -> list[str]:
        """Every account that a job names."""
        return sorted({job.account for job in self.jobs})

    @property
    def gpu_types(self) -> list[str]:
        """Every type that a job asks for; a small workload leaves some types with a price out."""
        return sorted({job.gpu_type for job in self.jobs})

    def first(self, count: int) -> Workload:
        """The workload with its first jobs only."""
        return replace(self, jobs=self.jobs[:count])

    def demand(self, org: str) -> int:
        """The cost of an org's jobs if every one ran to its end, in micro-credits."""
        mine = (job for job in self.jobs if org_of(job.account) == org)
        return sum(
            job.milli_gpus * self.prices[job.gpu_type] * sum(job.attempts_s) // (HOUR_S * MILLI)
            for job in mine
        )

    def peak(self, gpu_type: str) -> int:
        """The most GPUs of a type in use at once, in thousandths, if jobs start on arrival."""
        steps = []
        for job in self.jobs:
            if job.gpu_type == gpu_type:
                steps.append((job.arrives_s, job.milli_gpus))
                steps.append((job.arrives_s + sum(job.attempts_s), -job.milli_gpus))
        level = most = 0
        for _, change in sorted(steps):
            level += change
            most = max(most, level)
        return most


class Tenants:
    """Assigns jobs to accounts by a hash of the seed and the job's name; sizes are Zipf's."""

    def __init__(self, seed: int, orgs: int) -> None:
        self._seed = seed
        self._orgs = [f"org-{number:02d}" for number in range(1, orgs + 1)]
        self._weights = [1 / number for number in range(1, orgs + 1)]

    def account_of(self, name: str) -> str:
        """The account of a job; the same seed and name give the same account."""
        digest = hashlib.sha256(f"{self._seed}:{name}".encode()).digest()
        dice = random.Random(digest)  # noqa: S311  # a simulation, not a secret
        (org,) = dice.choices(self._orgs, self._weights)
        return f"{org}/{dice.choice(PROJECTS)}/{dice.choice(USERS)}"


def org_of(account: str) -> str:
    """The org of an account's path."""
    return account.partition("/")[0]


def made_up(*, seed: int, jobs: int, hours: int, orgs: int) -> Workload:
    """A workload from a seed: arrivals without memory, log-normal run times, mixed sizes."""
    dice = random.Random(seed)  # noqa: S311  # a simulation, not a secret
    tenants = Tenants(seed, orgs)
    arrivals = sorted(dice.uniform(0, hours * HOUR_S) for _ in range(jobs))
    made = tuple(_job(dice, tenants, n, int(at)) for n, at in enumerate(arrivals, start=1))
    return Workload(source=f"made up from seed {seed}", jobs=made, prices=dict(PRICES))


def _job(dice: random.Random, tenants: Tenants, number: int, arrives_s: int) -> SimulatedJob:
    name = f"job-{number:06d}"
    gpu_type, milli_gpus, _ = dice.choices(SHAPES, [shape[2] for shape in SHAPES])[0]
    attempts = 1 if dice.random() < 0.9 else 2
    waits = dice.random() < 0.6
    return SimulatedJob(
        name=name,
        account=tenants.account_of(name),
        gpu_type=gpu_type,
        milli_gpus=milli_gpus,
        arrives_s=arrives_s,
        attempts_s=tuple(_run_s(dice) for _ in range(attempts)),
        waits=waits,
        leaves_s=arrives_s + 6 * HOUR_S if waits else None,
    )


def _run_s(dice: random.Random) -> int:
    return max(30, min(48 * HOUR_S, int(MEDIAN_RUN_S * dice.lognormvariate(0, 1.2))))


def ordered(jobs: Sequence[SimulatedJob]) -> tuple[SimulatedJob, ...]:
    """Jobs in the order of their arrival."""
    return tuple(sorted(jobs, key=lambda job: (job.arrives_s, job.name)))
