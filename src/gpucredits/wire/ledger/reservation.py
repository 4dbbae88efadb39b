"""Leases on the wire: reserve, settle, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from gpucredits.core import bounds, ids
from gpucredits.core.command import Reserve
from gpucredits.core.gpu_type import REGION_DEFAULT
from gpucredits.core.money import MILLI_PER_GPU, format_credits
from gpucredits.core.outcome import Reserved
from gpucredits.core.reservation import Decision, Exhaustion, Reservation, ReservationState
from gpucredits.core.rules.credit.funding import shares_paid
from gpucredits.wire.dispatch.queue import QueueAnswer
from gpucredits.wire.documented import (
    ALLOW_PARTIAL,
    ATOMIC,
    CPU,
    DEADLINE,
    ENDED_AT,
    GANG,
    GANG_SIZE,
    GPU_COUNT,
    GPU_TYPE,
    GRACE_SECONDS,
    JOB_ID,
    MEMORY,
    METADATA,
    NEXT_CURSOR,
    NODE,
    QUEUE_PRIORITY,
    REGION,
    RESERVATION_ID,
    RESULTS,
    SETTLED,
    STATE,
    doc,
)
from gpucredits.wire.problem import Problem
from gpucredits.wire.scalars import (
    AccountPath,
    Amount,
    Credits,
    CreditsText,
    GpuCount,
    Gpus,
    GpuType,
    Instant,
    InstantText,
    Metadata,
    Name,
    Region,
    format_instant,
    gpus_to_wire,
)

RESERVATIONS_BATCH_MAX = 1_000
SEQ_MAX = 2**53 - 1  # the largest integer that every JSON reader keeps exact
SECONDS_PER_HOUR = 3_600
JOB_PRIORITY_MAX = 1_000
EXPECTED_SECONDS_MAX = 366 * 24 * SECONDS_PER_HOUR
_RATE_DECIMALS = 12  # three more than the hour's
_HOUR_RATE_DECIMALS = 9

StateName = Literal["active", "settled", "canceled", "expired"]
DecisionName = Literal["continue", "throttle", "drain", "stop"]
ExhaustionName = Literal["stop", "drain", "finish"]
Seq = Annotated[int, Meta(ge=1, le=SEQ_MAX, description="Rises with every report of a node.")]
UsedMs = Annotated[
    int, Meta(ge=0, le=bounds.USED_MS_MAX, description="Use since admission in all.")
]
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
    int, Meta(ge=0, le=bounds.WINDOW_MS_MAX // 1_000, description="At most a window is of use.")
]
EscrowWindows = Annotated[int, Meta(ge=0, le=bounds.ESCROW_WINDOWS_MAX)]
HourRateText = Annotated[str, Meta(pattern=r"^\d+(\.\d{1,9})?$", description="Credits per hour.")]
RateText = Annotated[str, Meta(pattern=r"^\d+(\.\d{1,12})?$", description="Credits per second.")]
WINDOW = doc("How far ahead a hold pays, and so how long a lease lasts between beats.")
ESCROW = doc("How many windows are held beyond the one that runs.")
ON_EXHAUSTION = doc("What happens to the job when its lease can no longer be renewed in full.")
MAY_OVERDRAW = doc("How far the job may run beyond its payer's last credit.")

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

    cpu: Annotated[ResourceAmount, CPU] = 0
    memory: Annotated[ResourceAmount, MEMORY] = 0


class ReserveRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Ask for a lease: GPUs of one type for a job on one node.

    ``exhaustion`` says what becomes of the job when it can no longer be renewed in full: it stops
    at once, drains to its last credit with a signal ``grace_seconds`` before the end, or finishes
    on an ``overdraft`` of at most so much.

    The fields after ``metadata`` are for pools: whether to wait for a turn, credits or quota, until
    when (``deadline``), with fewer GPUs if need be (``allow_partial``), and what the pool should
    know of the job. Members of a ``gang`` start together or not at all.
    """

    account: Annotated[AccountPath, doc("The account of the job.")]
    job_id: Annotated[Name, JOB_ID]
    gpu_type: Annotated[GpuType, GPU_TYPE]
    gpu_count: Annotated[GpuCount, GPU_COUNT] = field(
        default_factory=lambda: GpuCount(MILLI_PER_GPU)
    )
    region: Annotated[Region, REGION] = field(default_factory=lambda: Region(REGION_DEFAULT))
    node: Annotated[Name | None, doc("The node; a job has one live lease on a node.")] = None
    window_seconds: Annotated[WindowSeconds | None, WINDOW] = None
    escrow_windows: Annotated[EscrowWindows, ESCROW] = 0
    max_amount: Annotated[Amount | None, doc("The most that the job may cost.")] = None
    payer: Annotated[
        AccountPath | None,
        doc(
            "Who pays: an account of the funding chain, or in the key's scope. Unless "
            "given, the nearest that can."
        ),
    ] = None
    exhaustion: Annotated[ExhaustionName, ON_EXHAUSTION] = "drain"
    grace_seconds: Annotated[GraceSeconds, GRACE_SECONDS] = 0
    overdraft: Annotated[Credits, MAY_OVERDRAW] = field(default_factory=lambda: Credits(0))
    metadata: Annotated[Metadata | None, METADATA] = None
    wait: Annotated[
        bool, doc("Whether to wait for capacity, credits or quota; other refusals come at once.")
    ] = False
    deadline: Annotated[Instant | None, DEADLINE] = None
    allow_partial: Annotated[bool, ALLOW_PARTIAL] = False
    priority: Annotated[int, Meta(ge=-JOB_PRIORITY_MAX, le=JOB_PRIORITY_MAX), QUEUE_PRIORITY] = 0
    gang: Annotated[Name | None, GANG] = None
    gang_size: Annotated[
        Annotated[int, Meta(ge=1, le=RESERVATIONS_BATCH_MAX)] | None, GANG_SIZE
    ] = None
    expected_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=EXPECTED_SECONDS_MAX)] | None,
        doc("How long the job is expected to run; used for backfill."),
    ] = None
    preemptible: Annotated[
        bool, doc("Whether the job may be stopped for others; only system keys may say no.")
    ] = True
    resources: Annotated[
        ReserveResources | None, doc("Resources that the job needs besides GPUs.")
    ] = None
    token: Annotated[bool, doc("Whether to answer with a signed lease token.")] = False


class ReserveBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Many leases, of any orgs; ``atomic``: of one org, all or nothing, as for a job over nodes."""

    items: Annotated[
        list[ReserveRequest],
        Meta(min_length=1, max_length=RESERVATIONS_BATCH_MAX),
        doc("The items, in order."),
    ]
    atomic: Annotated[bool, ATOMIC] = False


class PayerShare(Struct, kw_only=True):
    """An account that pays or has paid for a lease, and what it was charged in all."""

    account: Annotated[str, doc("An account that pays or has paid.")]
    paid: Annotated[CreditsText, doc("Credits charged to the account for the lease, less refunds.")]


class ReservationAnswer(Struct, kw_only=True):
    """A lease and what it has cost so far.

    ``payers`` are the accounts that have paid for it in turn, the present one last. An account that
    the caller's key does not see is ``an account above``.
    """

    reservation_id: Annotated[str, RESERVATION_ID]
    state: Annotated[StateName, STATE]
    account: Annotated[str, doc("The account of the job.")]
    payer: Annotated[str, doc("The account that pays for the job now.")]
    job_id: Annotated[str, JOB_ID]
    node: Annotated[str, NODE]
    gpu_type: Annotated[str, GPU_TYPE]
    gpu_count: Annotated[Gpus, GPU_COUNT]
    region: Annotated[str, REGION]
    rate_per_second: Annotated[RateText, doc("The job's cost per second, cut after 12 decimals.")]
    rate_per_hour: Annotated[HourRateText, doc("The job's exact cost per hour.")]
    price_id: Annotated[str | None, doc("The pinned version of the price; null if there is none.")]
    window_seconds: Annotated[int, WINDOW]
    escrow_windows: Annotated[int, ESCROW]
    max_amount: Annotated[
        CreditsText | None, doc("The most that the job may cost; null if there is no such bound.")
    ]
    exhaustion: Annotated[ExhaustionName, ON_EXHAUSTION]
    grace_seconds: Annotated[int, GRACE_SECONDS]
    overdraft: Annotated[CreditsText, MAY_OVERDRAW]
    held: Annotated[CreditsText, doc("Credits held for the lease.")]
    settled: Annotated[CreditsText, SETTLED]
    adjusted: Annotated[CreditsText, doc("Credits charged later, on top of what was settled.")]
    refunded: Annotated[CreditsText, doc("Credits given back later.")]
    used_ms: Annotated[int, doc("The last accepted use, in total since admission.")]
    seq: Annotated[int, doc("The last accepted report; 0 before the first.")]
    decision: Annotated[DecisionName, doc("The decision of the last heartbeat.")]
    admitted_at: Annotated[InstantText, doc("When the lease began.")]
    expires_at: Annotated[InstantText, doc("When the lease lapses without another heartbeat.")]
    expires_in_ms: Annotated[int, doc("Time until the lease lapses without another heartbeat.")]
    ended_at: Annotated[InstantText | None, ENDED_AT]
    ended_by: Annotated[
        str | None, doc("The actor that settled or canceled the lease; null if it runs or lapsed.")
    ]
    stops_at: Annotated[
        InstantText | None,
        doc(
            "The lease is not renewed beyond this instant, because the job was told to "
            "stop; null otherwise."
        ),
    ]
    payers: Annotated[list[PayerShare], doc("Who paid how much, in turn; the present payer last.")]
    metadata: Annotated[dict[str, str], METADATA]
    token: Annotated[str | None, doc("The lease token, if a reserve asked for it.")] = None


class ReservationPage(Struct, kw_only=True):
    """Reservations, the latest first."""

    reservations: Annotated[list[ReservationAnswer], doc("The leases of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class ReserveResult(Struct, kw_only=True, omit_defaults=True):
    """One item of a batch: the lease, its place in the queue, or why not."""

    status: Annotated[int, doc("The HTTP status that this item alone would get.")]
    reservation: Annotated[ReservationAnswer | None, doc("The lease that was made.")] = None
    queue: Annotated[QueueAnswer | None, doc("The queued request, if the item waits.")] = None
    problem: Annotated[Problem | None, doc("Why the item failed.")] = None


class ReserveResults(Struct, kw_only=True):
    """One result for each item, in order."""

    results: Annotated[list[ReserveResult], RESULTS]


def reserve_from_wire(request: ReserveRequest, scope: str) -> Reserve:
    """The core's command, of a key of this scope."""
    return Reserve(
        account=str(request.account),
        job_id=str(request.job_id),
        gpu_type=str(request.gpu_type),
        milli_gpus=int(request.gpu_count),
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
        gpu_count=gpus_to_wire(lease.milli_gpus),
        region=lease.region,
        rate_per_second=format_rate(lease.rate),
        rate_per_hour=format_hour_rate(lease.rate),
        price_id=format_price_id(lease.price_id),
        window_seconds=max(lease.window_ms // 1_000, 1),
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


def decision_name(decision: Decision) -> DecisionName:
    """The word for a decision."""
    return _DECISIONS[decision]


def format_price_id(price_id: int) -> str | None:
    """The text of a price's id; list prices and discounts share one numbering."""
    return ids.format_id(ids.PRICE, 0, price_id) if price_id else None


def format_rate(rate: int) -> str:
    """Credits per second, cut after 12 decimals; the hour's rate is the exact one."""
    return _decimal(rate * 1_000 // SECONDS_PER_HOUR, _RATE_DECIMALS)


def format_hour_rate(rate: int) -> str:
    """Credits per hour: thousandths of GPUs times micro-credits, so nine decimals."""
    return _decimal(rate, _HOUR_RATE_DECIMALS)


@lru_cache(maxsize=1_024)  # few rates, shown often
def _decimal(number: int, decimals: int) -> str:
    whole, fraction = divmod(number, 10**decimals)
    digits = f"{fraction:0{decimals}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
