"""The work that every contestant does: orgs, running jobs, who reports them and what they cost.

Owns: sizes of orgs, GPUs of each job, the order in which nodes report, and the expected charge.
Must not: speak to anything. Equal arguments give equal work, so that figures can be compared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

from gpucredits.core.money import MICROS_PER_CREDIT, MILLI_PER_GPU, cost

GPU_TYPE = "h100"
REGION = "default"
PRICE_PER_GPU_HOUR = 36 * MICROS_PER_CREDIT  # 0.01 credit per GPU-second, as in the worked example
WINDOW_S = 3_600  # longer than it takes to seed a million
GPU_COUNTS = (1, 2, 4, 8)
GRANT = 400_000_000 * MICROS_PER_CREDIT  # to each org: nobody runs dry, so every beat is charged
SEED = 20_250_804

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Job:
    """One running job: its number, its org's number (both from 0) and its GPUs."""

    number: int
    org: int
    gpus: int

    @property
    def rate(self) -> int:
        """Thousandths of its GPUs times micro-credits per GPU-hour."""
        return MILLI_PER_GPU * self.gpus * PRICE_PER_GPU_HOUR

    def charge(self, used_ms: int) -> int:
        """What the formula says for this much use in all."""
        return cost(self.rate, used_ms)


@dataclass(frozen=True)
class Workload:
    """``reservations`` running jobs over ``orgs`` orgs, few of them large and many small."""

    reservations: int
    orgs: int

    @cached_property
    def org_sizes(self) -> list[int]:
        """Jobs of each org, as one over its rank: the first of 1,000 orgs has a seventh of all."""
        weights = [1 / rank for rank in range(1, self.orgs + 1)]
        spare = self.reservations - self.orgs  # every org has one
        total = sum(weights)
        sizes = [1 + int(spare * weight / total) for weight in weights]
        for index in range(self.reservations - sum(sizes)):
            sizes[index % self.orgs] += 1
        return sizes

    @cached_property
    def jobs(self) -> list[Job]:
        """Every job, org by org."""
        owners = chain.from_iterable([org] * size for org, size in enumerate(self.org_sizes))
        return [
            Job(number, org, GPU_COUNTS[number % len(GPU_COUNTS)])
            for number, org in enumerate(owners)
        ]

    def shuffled(self) -> list[Job]:
        """The jobs in the order in which they report: any node runs jobs of any org."""
        order = list(self.jobs)
        random.Random(SEED).shuffle(order)  # noqa: S311  # an order, not a secret
        return order


def org_path(org: int) -> str:
    """The path of the account that holds an org's credits."""
    return f"org-{org:05d}"


def scopes(org: int) -> tuple[str, str, str]:
    """An org, its project and the person in it whose jobs run; the org pays."""
    path = org_path(org)
    return path, f"{path}/training", f"{path}/training/ada"


def job_path(org: int) -> str:
    """The path of the account that an org's jobs run on."""
    return scopes(org)[-1]


def dealt(items: list[Item], hands: int) -> list[list[Item]]:
    """Items dealt out one by one, so that no hand is more than one longer than another."""
    return [items[hand::hands] for hand in range(hands)]
