"""Leases on the wire: reserve, settle, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from gpucredits.core import bounds, ids
from gpucredits.core.command import Reserve, Settle
from gpucredits.core.gpu_type import REGION_DEFAULT
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Closed, Reserved
from gpucredits.core.reservation import Decision, Exhaustion, Reservation, ReservationState
from gpucredits.core.rules.credit.funding import shares_paid
from gpucredits.wire.problem import Problem
from gpucredits.wire.queue import QueueAnswer
from gpucredits.wire.scalars import (
    AccountPath,
    Amount,
    Credits,
    CreditsText,
    GpuType,
    Instant,
    InstantText,
    Metadata,
    Name,
    Region,
    format_instant,
)

RESERVATIONS_BATCH_MAX = 1_000
SEQ_MAX = 2**53 - 1  # the largest integer that every JSON reader keeps exact
SECONDS_PER_HOUR = 3_600
JOB_PRIORITY_MAX = 1_000
EXPECTED_SECONDS_MAX = 366 * 24 * SECONDS_PER_HOUR
_RATE_DECIMALS = 12

StateName = Literal["active", "settled", "canceled", "expired"]
DecisionName = Literal["continue", "throttle", "drain", "stop"]
ExhaustionName = Literal["stop", "drain", "finish"]
Seq = Annotated[int, Meta(ge=1, le=SEQ_MAX, description="Rises with every report of a node.")]
UsedMs = Annotated[
    int, Meta(ge=0, le=bounds.USED_MS_MAX, description="Use since admission in all.")
]
GpuCount = Annotated[int, Meta(ge=1, le=bounds.GPU_COUNT_MAX)]
WindowSeconds = Annotated[
    int,
    Meta(
        ge=bounds.WINDOW_MS_MIN // 1_000,
        le=bounds.WINDOW_MS_MAX // 1_000,
        description="Without it 120, or what the bounds on leases allow if that is less.",
    ),
]
ResourceAmount = Annotated[int, Meta(ge=0, le=SEQ_MAX)]
GraceSeconds = Annotated[
    int,
    Meta(ge=0, le=bounds.WINDOW_MS_MAX // 1_000, description="At most a window is of use."),
]
EscrowWindows = Annotated[int, Meta(ge=0, le=bounds.ESCROW_WINDOWS_MAX)]
RateText = Annotated[str, Meta(pattern=r"^\d+(\.\d{1,12})?$", description="Credits per second.")]

STATE_NAMES: dict[ReservationState, StateName] = {
    ReservationState.ACTIVE: "active",
    ReservationState.SETTLED: "settled",
    ReservationState.CANCELED: "canceled",
    ReservationState.EXPIRED: "expired",
}
_DECISIONS: dict[Decision, DecisionName] = {
    Decision.CONTINUE: "continue",
    Decision.THROTTLE: "throttle",
    Decision.DRAIN: "drain",
    Decision.STOP: "stop",
}
_EXHAUSTIONS: dict[ExhaustionName, Exhaustion] = {
    "stop": Exhaustion.STOP,
    "drain": Exhaustion.DRAIN,
    "finish": Exhaustion.FINISH,
}
_EXHAUSTION_NAMES = {exhaustion: name for name, exhaustion in _EXHAUSTIONS.items()}


class ReserveResources(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a job needs besides GPUs, in the units of its pool."""

    cpu: ResourceAmount = 0
    memory: ResourceAmount = 0


class ReserveRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Ask for a lease: GPUs of one type for a job on one node.

    ``exhaustion`` says what becomes of the job when it can no longer be renewed in full: it stops
    at once, drains to its last credit with a signal ``grace_seconds`` before the end, or finishes
    on an ``overdraft`` of at most so much.

    What follows ``metadata`` is for pools: whether to wait for a turn, credits or quota, until when
    (``deadline``), with fewer GPUs if need be (``allow_partial``), and what the pool should know of
    the job. Members of a ``gang`` start together or not at all.
    """

    account: AccountPath
    job_id: Name
    gpu_type: GpuType
    gpu_count: GpuCount = 1
    region: Region = field(default_factory=lambda: Region(REGION_DEFAULT))
    node: Name | None = None
    window_seconds: WindowSeconds | None = None
    escrow_windows: EscrowWindows = 0
    max_amount: Amount | None = None
    payer: AccountPath | None = None
    exhaustion: ExhaustionName = "drain"
    grace_seconds: GraceSeconds = 0
    overdraft: Credits = field(default_factory=lambda: Credits(0))
    metadata: Metadata | None = None
    wait: bool = False
    deadline: Instant | None = None
    allow_partial: bool = False
    priority: Annotated[int, Meta(ge=-JOB_PRIORITY_MAX, le=JOB_PRIORITY_MAX)] = 0
    gang: Name | None = None
    gang_size: Annotated[int, Meta(ge=1, le=RESERVATIONS_BATCH_MAX)] | None = None
    expected_seconds: Annotated[int, Meta(ge=1, le=EXPECTED_SECONDS_MAX)] | None = None
    preemptible: bool = True
    resources: ReserveResources | None = None


class ReserveBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Many leases, of any orgs; ``atomic``: of one org, all or nothing, as for a job over nodes."""

    items: Annotated[list[ReserveRequest], Meta(min_length=1, max_length=RESERVATIONS_BATCH_MAX)]
    atomic: bool = False


class PayerShare(Struct, kw_only=True):
    """An account that pays or has paid for a lease, and what it was charged in all."""

    account: str
    paid: CreditsText


class ReservationAnswer(Struct, kw_only=True):
    """A lease and what it has cost so far.

    ``payers`` are the accounts that have paid for it in turn, the present one last. An account that
    the caller's key does not see is ``an account above``.
    """

    reservation_id: str
    state: StateName
    account: str
    payer: str
    job_id: str
    node: str
    gpu_type: str
    gpu_count: int
    region: str
    rate_per_second: RateText
    rate_per_hour: CreditsText
    price_id: str | None
    window_seconds: int
    escrow_windows: int
    max_amount: CreditsText | None
    exhaustion: ExhaustionName
    grace_seconds: int
    overdraft: CreditsText
    held: CreditsText
    settled: CreditsText
    adjusted: CreditsText
    refunded: CreditsText
    used_ms: int
    seq: int
    decision: DecisionName
    admitted_at: InstantText
    expires_at: InstantText
    expires_in_ms: int
    ended_at: InstantText | None
    ended_by: str | None
    stops_at: InstantText | None
    payers: list[PayerShare]
    metadata: dict[str, str]


class ReservationPage(Struct, kw_only=True):
    """Reservations, the latest first."""

    reservations: list[ReservationAnswer]
    next_cursor: str | None = None


class ReserveResult(Struct, kw_only=True, omit_defaults=True):
    """One item of a batch: the lease, its place in the queue, or why not."""

    status: int
    reservation: ReservationAnswer | None = None
    queue: QueueAnswer | None = None
    problem: Problem | None = None


class ReserveResults(Struct, kw_only=True):
    """One result for each item, in order."""

    results: list[ReserveResult]


class SettleRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The job ended; without ``used_ms`` the last accepted use stands."""

    seq: Seq | None = None
    used_ms: UsedMs | None = None


class CancelRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The job never started."""


class ClosedAnswer(Struct, kw_only=True):
    """How a reservation ended, what its end released, and why less or more was not charged."""

    reservation_id: str
    state: StateName
    settled: CreditsText
    released: CreditsText
    used_ms: int
    flagged: str = ""


def reserve_from_wire(request: ReserveRequest, scope: str) -> Reserve:
    """The core's command, of a key of this scope."""
    return Reserve(
        account=str(request.account),
        job_id=str(request.job_id),
        gpu_type=str(request.gpu_type),
        gpu_count=request.gpu_count,
        region=str(request.region),
        node=str(request.node or ""),
        window_ms=(request.window_seconds or 0) * 1_000,
        escrow_windows=request.escrow_windows,
        max_amount=int(request.max_amount or 0),
        payer=str(request.payer or ""),
        exhaustion=_EXHAUSTIONS[request.exhaustion],
        grace_ms=request.grace_seconds * 1_000,
        overdraft=int(request.overdraft),
        metadata=dict(request.metadata or {}),
        scope=scope,
    )


def settle_from_wire(reservation: int, request: SettleRequest) -> Settle:
    """The core's command."""
    return Settle(reservation_id=reservation, seq=request.seq, used_ms=request.used_ms)


def reservation_to_wire(  # the lease, and what others know of it
    org_id: int,
    lease: Reservation,
    *,
    account: str,
    payers: Sequence[str],
    expires_in_ms: int,
    ended_by: str | None = None,
) -> ReservationAnswer:
    """The lease as it is shown; ``payers`` are the accounts that have paid for it in turn."""
    return ReservationAnswer(
        reservation_id=ids.format_id(ids.RESERVATION, org_id, lease.reservation_id),
        state=STATE_NAMES[lease.state],
        account=account,
        payer=payers[-1],
        job_id=lease.job_id,
        node=lease.node,
        gpu_type=lease.gpu_type,
        gpu_count=lease.gpu_count,
        region=lease.region,
        rate_per_second=format_rate(lease.rate_per_hour),
        rate_per_hour=format_credits(lease.rate_per_hour),
        price_id=format_price_id(lease.price_id),
        window_seconds=lease.window_ms // 1_000,
        escrow_windows=lease.escrow_windows,
        max_amount=format_credits(lease.max_amount) if lease.max_amount else None,
        exhaustion=_EXHAUSTION_NAMES[lease.exhaustion],
        grace_seconds=lease.grace_ms // 1_000,
        overdraft=format_credits(lease.overdraft),
        held=format_credits(lease.held),
        settled=format_credits(lease.settled),
        adjusted=format_credits(lease.adjusted),
        refunded=format_credits(lease.refunded),
        used_ms=lease.used_ms,
        seq=lease.seq,
        decision=decision_name(lease.decision),
        admitted_at=format_instant(lease.admitted_at),
        expires_at=format_instant(lease.expires_at),
        expires_in_ms=expires_in_ms,
        ended_at=format_instant(lease.ended_at) if lease.ended_at else None,
        ended_by=ended_by,
        stops_at=format_instant(lease.stopping_at) if lease.stopping_at else None,
        payers=[
            PayerShare(account=path, paid=format_credits(amount))
            for path, (_, amount) in zip(payers, shares_paid(lease), strict=True)
        ],
        metadata=lease.metadata,
    )


def reserved_to_wire(org_id: int, outcome: Reserved) -> ReservationAnswer:
    """The answer to a reserve."""
    return reservation_to_wire(
        org_id,
        outcome.reservation,
        account=outcome.account,
        payers=[outcome.payer],
        expires_in_ms=outcome.expires_in_ms,
    )


def closed_to_wire(reservation_id: str, outcome: Closed) -> ClosedAnswer:
    """The answer to a settle or a cancel."""
    return ClosedAnswer(
        reservation_id=reservation_id,
        state=STATE_NAMES[outcome.state],
        settled=format_credits(outcome.settled),
        released=format_credits(outcome.released),
        used_ms=outcome.used_ms,
        flagged=outcome.flagged,
    )


def decision_name(decision: Decision) -> DecisionName:
    """The word for a decision."""
    return _DECISIONS[decision]


def format_price_id(price_id: int) -> str | None:
    """The text of a price's id; list prices and discounts share one numbering."""
    return ids.format_id(ids.PRICE, 0, price_id) if price_id else None


def format_rate(rate_per_hour: int) -> str:
    """Credits per second, cut after 12 decimals; the hour's rate is the exact one."""
    whole, fraction = divmod(rate_per_hour * 10**6 // SECONDS_PER_HOUR, 10**_RATE_DECIMALS)
    digits = f"{fraction:012d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
