"""One pool, frozen: its capacity, its tenants, what runs, what waits, and the policy.

Owns: the input of a decision, as plain rows that can be hashed, sorted, dumped and replayed.
Must not: decide.

Rows are named tuples because a snapshot may hold a hundred thousand of them. Instants are in
microseconds like everywhere in the core; durations carry their unit in their name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

PATH_DEPTH: Final = 3  # org, project, user
WEIGHT_MAX: Final = 1_000_000

Capacity = tuple[tuple[str, int], ...]
"""What a pool has, such as ``(("gpu", 128), ("cpu", 1024))``; its order is that of amounts."""

Amounts = tuple[int, ...]
"""Whole amounts of the pool's resources, in the order of its capacity: ``(4, 32)``."""


class Scope(IntEnum):
    """How far up the tree something reaches."""

    USER = 0
    PROJECT = 1
    ORG = 2
    POOL = 3


class UsageOrder(StrEnum):
    """What past use, decayed, means for the order among tenants of one level."""

    IGNORED = "ignored"
    TIES = "ties"  # of two that hold equally much for their weight, the one that used less
    FIRST = "first"  # the one that used less for its weight, whatever they hold now


class Tenant(NamedTuple):
    """Settings of a tenant at any level; a tenant that is not listed has these defaults.

    Weight 0 means that it gets only what its siblings leave. ``usage`` is decayed use in any
    unit that all tenants of the pool share. ``may_borrow`` counts on orgs only.
    """

    path: str
    weight: int = 1
    usage: int = 0
    may_borrow: bool = True


class RunningJob(NamedTuple):
    """Work that holds capacity now; ``stopping_at`` is the deadline of an earlier preemption.

    ``promised_end`` is the end that it stated when it overtook somebody who was waiting.
    """

    job_id: str
    tenant: str
    amounts: Amounts
    priority: int = 0
    started_at: int = 0
    expected_end: int | None = None
    preemptible: bool = True
    gang: str = ""
    stopping_at: int | None = None
    promised_end: int | None = None


class WaitingRequest(NamedTuple):
    """Work that would like to start; a higher priority goes first.

    Members of a gang name the same gang and how many of them there are. ``held_by`` names another
    gate (credits, quota) that has to clear first.
    """

    request_id: str
    tenant: str
    amounts: Amounts
    priority: int = 0
    submitted_at: int = 0
    duration_ms: int | None = None
    gang: str = ""
    gang_size: int = 1
    held_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Policy:
    """How a pool is shared; every bound of a cycle is here."""

    preemption: bool = True
    grace_ms: int = 30_000
    min_runtime_ms: int = 300_000
    preemptions_max: int = 100
    backfill: bool = True
    backfill_depth: int = 1_000
    # Patience; 0 means without end. A head of the queue that has no start estimate and has waited
    # so long is overtaken no more: what becomes free is kept for it. A unit that is larger than
    # its tenant's whole share, and so never within it, then gets its turn if the tenant holds
    # nothing.
    hold_after_ms: int = 3_600_000
    priority_scope: Scope = Scope.USER
    usage_order: UsageOrder = UsageOrder.IGNORED
    estimate_depth: int = 1_000
    # Whether requests far behind a full pool are still given a place and a reason.
    rank_all: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PoolSnapshot:
    """Everything a decision depends on.

    Only resources that have a capacity are listed and gate; a pool without any does not gate.
    """

    pool: str
    now: int
    capacity: Capacity = ()
    tenants: tuple[Tenant, ...] = ()
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingRequest, ...] = ()
    policy: Policy = field(default_factory=Policy)


def check_snapshot(snapshot: PoolSnapshot) -> None:
    """ValueError on rows that no pool can have; for callers, before they trust their loading."""
    _check_unique("tenant", [tenant.path for tenant in snapshot.tenants])
    _check_unique("job", [job.job_id for job in snapshot.running])
    _check_unique("request", [request.request_id for request in snapshot.waiting])
    for tenant in snapshot.tenants:
        _check_path(tenant.path)
        if not 0 <= tenant.weight <= WEIGHT_MAX:
            raise ValueError(f"weight of {tenant.path} must be 0 to {WEIGHT_MAX}")
        if tenant.usage < 0:
            raise ValueError(f"usage of {tenant.path} must not be negative")
    _check_unique("resource", [name for name, _ in snapshot.capacity])
    if any(amount < 0 for _, amount in snapshot.capacity):
        raise ValueError(f"capacity must not be negative: {snapshot.capacity}")
    rows: list[RunningJob | WaitingRequest] = [*snapshot.running, *snapshot.waiting]
    for path in {row.tenant for row in rows}:
        _check_path(path)
    for amounts in {row.amounts for row in rows}:
        if len(amounts) != len(snapshot.capacity) or any(amount < 0 for amount in amounts):
            raise ValueError(f"{amounts} must give an amount of each resource of the pool")
    for request in snapshot.waiting:
        if request.gang_size < 1:
            raise ValueError(f"gang of {request.request_id} must have at least one member")


def _check_unique(noun: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"a {noun} is listed twice")


def _check_path(path: str) -> None:
    segments = path.split("/")
    if not all(segments) or len(segments) > PATH_DEPTH:
        raise ValueError(f"a tenant is an org, project or user such as acme/vision/alice: {path!r}")
