"""What happened in a simulation: bills beside the oracle's, credits, refusals and waiting times.

Owns: comparing every bill with the oracle's, and counting. Must not: print or draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from gpucredits.client import Client
from gpucredits.simulation.fleet import History
from gpucredits.simulation.opening import MICROS, Opening
from gpucredits.simulation.oracle import bill, least_bill
from gpucredits.simulation.workload import Workload, org_of

US_PER_S: Final = 1_000_000
WAIT_STEPS_S: Final = (0, 60, 600, 3_600, 6 * 3_600, 24 * 3_600)
WAIT_NAMES: Final = (
    "at once", "up to 1 min", "up to 10 min", "up to 1 h", "up to 6 h", "up to 24 h", "longer"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongBill:
    """A bill that differs from the oracle's."""

    job: str
    reservation_id: str
    billed: int
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantTotal:
    """An org's credits, its spending by the server's books, and by the oracle.

    ``least`` is below ``expected`` if leases were used to their last millisecond.
    """

    org: str
    jobs: int
    granted: int
    spent: int
    expected: int
    least: int

    @property
    def is_right(self) -> bool:
        """Whether the org's spending is what the oracle says."""
        return self.least <= self.spent <= self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of a simulation."""

    source: str
    jobs: int
    unleased: int  # jobs that never had a lease: refused, or gave up waiting
    attempts: int  # leases, of which a job that is begun again has several
    beats: int
    simulated_s: int
    wrong: list[WrongBill]
    rounded: int  # leases used to their last millisecond, billed up to a millisecond less
    tenants: list[TenantTotal]
    ends: dict[str, int]
    refusals: dict[str, int]  # by the gates that were closed, or by the reason
    faults: dict[str, int]
    waits: list[tuple[str, int]]  # how many jobs waited at most so long
    left: int

    @property
    def is_right(self) -> bool:
        """Whether every bill and every total is the oracle's."""
        return not self.wrong and all(each.is_right for each in self.tenants)


def summarise(
    client: Client,
    workload: Workload,
    opening: Opening,
    history: History,
    tell: Callable[[int, int], None],
) -> Summary:
    """Ask the server for every bill, and compare each with the oracle's."""
    wrong, rounded = [], 0
    expected, least = Counter[str](), Counter[str]()
    for number, attempt in enumerate(history.attempts, start=1):
        price = workload.prices[attempt.job.gpu_type]
        must, may = bill(attempt, price), least_bill(attempt, price)
        billed = micros(client.reservation(attempt.reservation_id).settled)
        expected[org_of(attempt.job.account)] += must
        least[org_of(attempt.job.account)] += may
        rounded += may <= billed < must
        if not may <= billed <= must:
            found = WrongBill(
                job=attempt.job.name,
                reservation_id=attempt.reservation_id,
                billed=billed,
                expected=must,
            )
            wrong.append(found)
        tell(number, len(history.attempts))
    jobs = Counter(org_of(job.account) for job in workload.jobs)
    tenants = [
        TenantTotal(
            org=org,
            jobs=jobs[org],
            granted=granted,
            spent=micros(client.balance(org, tree=True).spent),
            expected=expected[org],
            least=least[org],
        )
        for org, granted in opening.granted.items()
    ]
    return Summary(
        source=workload.source,
        jobs=len(workload.jobs),
        unleased=len(workload.jobs) - len({each.job.name for each in history.attempts}),
        attempts=len(history.attempts),
        beats=history.beats,
        simulated_s=(history.ended_us - history.began_us) // US_PER_S,
        wrong=wrong,
        rounded=rounded,
        tenants=tenants,
        ends=dict(Counter(str(each.end) for each in history.attempts)),
        refusals=dict(Counter(_cause(row.gates, row.reason) for row in history.refusals)),
        faults=dict(history.faults),
        waits=_steps(history.waits_us),
        left=len(history.left),
    )


def _cause(gates: tuple[str, ...], reason: str) -> str:
    return " and ".join(gates) if gates else reason


def _steps(waits_us: list[int]) -> list[tuple[str, int]]:
    """The number of waits within each step: none, a minute, ten minutes and so on."""
    counts = [0] * len(WAIT_NAMES)
    for wait_us in waits_us:
        wait_s = wait_us // US_PER_S
        step = next((n for n, most in enumerate(WAIT_STEPS_S) if wait_s <= most), len(counts) - 1)
        counts[step] += 1
    return list(zip(WAIT_NAMES, counts, strict=True))


def micros(text: str) -> int:
    """Credits of an answer in micro-credits."""
    return int(Decimal(text) * MICROS)
