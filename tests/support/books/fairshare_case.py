"""Pools of GPUs written as tables: who runs, who waits, and what is decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import Decisions
from gpucredits.core.fairshare.snapshot import (
    Policy,
    PoolSnapshot,
    RunningJob,
    Tenant,
    WaitingRequest,
)

NOW = 1_000_000_000_000
MINUTE = 60_000_000
HOUR = 60 * MINUTE


def job(name: str, tenant: str, gpus: int, **fields: object) -> RunningJob:
    """A job that has run for an hour."""
    row = RunningJob(name, tenant, (1_000 * gpus,), started_at=NOW - HOUR)
    return row._replace(**fields)  # type: ignore[arg-type]  # rows of a table, by field name


def ask(name: str, tenant: str, gpus: int, **fields: object) -> WaitingRequest:
    """A request made a minute ago."""
    row = WaitingRequest(name, tenant, (1_000 * gpus,), submitted_at=NOW - MINUTE)
    return row._replace(**fields)  # type: ignore[arg-type]  # rows of a table, by field name


@dataclass(frozen=True)
class Case:
    """A pool of GPUs and what is decided: who starts, who stops, and who waits for what."""

    gpus: int
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingRequest, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    policy: Policy = field(default_factory=Policy)
    starts: str = ""
    stops: str = ""
    waits: str = ""

    def decide(self) -> Decisions:
        """What is decided for this pool."""
        return decide(
            PoolSnapshot(
                pool="h100",
                now=NOW,
                capacity=(("gpu", 1_000 * self.gpus),),
                tenants=self.tenants,
                running=self.running,
                waiting=self.waiting,
                policy=self.policy,
            )
        )

    def check(self) -> None:
        """What is decided is what the case says."""
        assert names(self.decide()) == (self.starts, self.stops, self.waits)


def names(decisions: Decisions) -> tuple[str, str, str]:
    """Who starts, who stops, and who waits for what, in order."""
    return (
        " ".join(row.request_id for row in decisions.admissions),
        " ".join(row.job_id for row in decisions.preemptions),
        " ".join(f"{row.request_id}:{row.reason}" for row in decisions.waiting),
    )
