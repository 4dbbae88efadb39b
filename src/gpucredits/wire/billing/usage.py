"""Use on the wire: what nodes measured, what was paid for, and when GPUs count as unused."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gpucredits.core.rules.leases import idle_guard
from gpucredits.wire.documented import (
    ACCOUNT,
    GPU_COUNT,
    GPU_TYPE,
    JOB_ID,
    NEXT_CURSOR,
    NODE,
    RESERVATION_ID,
    RESULTS,
    SET_BY_SCOPE,
    SETTLED,
    USED_MS,
    doc,
)
from gpucredits.wire.ledger.reservation import Seq, UsedMs
from gpucredits.wire.scalars import (
    AccountPath,
    CreditsText,
    GpuCount,
    Gpus,
    GpuType,
    InstantText,
    Name,
)
from gpucredits.wire.words import AuthorityName

EVENTS_MAX = 5_000

UsageStatus = Literal["stored", "duplicate", "accepted", "unknown", "dropped"]
GroupingName = Literal["job", "account", "gpu_type", "day"]
Percent = Annotated[int, Meta(ge=0, le=100)]

GuardSeconds = Annotated[int, Meta(ge=0, le=idle_guard.WINDOW_MS_MAX // 1_000)]
GuardPercent = Annotated[int, Meta(ge=1, le=100)]
GUARD_WINDOW = doc("The time over which utilization is averaged; 0 means no guard.")
GUARD_UTILIZATION = doc("GPUs with less utilization than this percentage are idle.")
GUARD_MEMORY = doc(
    "GPUs with at least this percentage of memory in use are busy; 0 ignores memory."
)
GUARD_STARTUP = doc("The time that a job has until its first use of a GPU; the window follows.")
GUARD_WARNING = doc("The time from the warning of an idle job to its drain.")
GUARD_GRACE = doc("The time that a draining job has to end before it is killed.")


class UsageEvent(Struct, kw_only=True, forbid_unknown_fields=True):
    """What one node measured for one lease between two moments of its monotonic clock.

    It names its reservation, or else its account and job.
    """

    seq: Annotated[Seq, doc("The number of the event; makes the event safe to repeat.")]
    start_ms: Annotated[UsedMs, doc("Start of the measurement, in milliseconds since admission.")]
    end_ms: Annotated[UsedMs, doc("End of the measurement, in milliseconds since admission.")]
    reservation_id: Annotated[
        str | None, doc("The id of the lease; otherwise give account and job_id.")
    ] = None
    account: Annotated[
        AccountPath | None, doc("The account of the job, if no reservation_id is given.")
    ] = None
    job_id: Annotated[Name | None, doc("The job, if no reservation_id is given.")] = None
    node: Annotated[Name | None, NODE] = None
    gpu_type: Annotated[GpuType | None, GPU_TYPE] = None
    gpu_count: Annotated[GpuCount | None, GPU_COUNT] = None
    gpu_utilization: Annotated[Percent | None, doc("GPU utilization in percent.")] = None


class UsageRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Events of one node; milliseconds count from the lease's admission."""

    events: Annotated[list[UsageEvent], Meta(max_length=EVENTS_MAX), doc("The measurements.")]
    node: Annotated[Name | None, NODE] = None


class UsageResult(Struct, kw_only=True, omit_defaults=True):
    """What became of one event."""

    seq: Annotated[int, doc("The number of the event.")]
    reservation_id: Annotated[str | None, doc("The id of the lease; null if there is none.")] = None
    job_id: Annotated[str | None, JOB_ID] = None
    status: Annotated[
        UsageStatus,
        doc(
            "stored, duplicate, or unknown if there is no such lease. A server with a bus says "
            "accepted: the bus has the event durably, and it will count once. dropped: it names no "
            "lease, and the org has 10,000 rows of unmatched use that wait for people."
        ),
    ]


class UsageResults(Struct, kw_only=True, omit_defaults=True):
    """One result for each event, in order."""

    results: Annotated[list[UsageResult], RESULTS]
    stored: Annotated[int, doc("The number of new events.")]
    duplicates: Annotated[int, doc("The number of events that had been stored before.")]
    accepted: Annotated[int, doc("The number of events that a bus has accepted.")] = 0
    dropped: Annotated[
        int, doc("The number of events without a lease for which there was no room.")
    ] = 0


class JobUsage(Struct, kw_only=True):
    """What one lease used and was charged, beside what was measured.

    ``spent`` covers the requested time. All other numbers cover the whole lease.
    """

    reservation_id: Annotated[str, RESERVATION_ID]
    account: Annotated[str, ACCOUNT]
    job_id: Annotated[str, JOB_ID]
    gpu_type: Annotated[str, GPU_TYPE]
    gpu_count: Annotated[Gpus, GPU_COUNT]
    used_ms: Annotated[int, USED_MS]
    gpu_ms: Annotated[int, doc("GPUs times milliseconds of use.")]
    settled: Annotated[CreditsText, SETTLED]
    adjusted: Annotated[CreditsText, doc("Credits charged later, on top of what was settled.")]
    refunded: Annotated[CreditsText, doc("Credits given back later.")]
    charged: Annotated[CreditsText, doc("Settled and adjusted credits, less refunds.")]
    measured_ms: Annotated[int, doc("Total time that the nodes measured.")]
    events: Annotated[int, doc("The number of stored measurements.")]
    late_ms: Annotated[
        int,
        doc(
            "Use reported after the lapse that is not charged: beyond what was authorised, "
            "or too late."
        ),
    ]
    admitted_at: Annotated[InstantText, doc("When the lease began.")]
    spent: Annotated[
        CreditsText, doc("Credits spent on the lease in the requested time, less refunds.")
    ]


class PaidGroup(Struct, kw_only=True):
    """What one job, account, type of GPU or day cost."""

    name: Annotated[str, doc("The job, account, GPU type or day.")]
    spent: Annotated[CreditsText, doc("Credits spent.")]
    reservations: Annotated[
        int | None, doc("The number of leases of a job that were paid for; by job only.")
    ] = None


class PaidTotal(Struct, kw_only=True):
    """Total spending in the requested time: always whole, whatever the page shows."""

    spent: Annotated[CreditsText, doc("Total credits spent, less refunds.")]
    groups: Annotated[
        int | None, doc("The number of groups; null by job, where they are not counted.")
    ] = None


class UsagePage(Struct, kw_only=True):
    """Use of an account and everything below it from ``since`` until before ``until``.

    ``total`` is what the account paid for in that time, in all. ``paid`` has the same in groups,
    the largest first; jobs come in the order of their latest leases. ``leases`` are those of the
    account's own jobs that were admitted, charged or corrected in that time, whoever paid, the
    latest first. Both lists go on at ``next_cursor``.
    """

    account: Annotated[str, ACCOUNT]
    since: Annotated[InstantText, doc("The start of the time that the page is about.")]
    until: Annotated[InstantText, doc("The end of that time: now at the latest.")]
    by: Annotated[GroupingName, doc("The property that spending is grouped by.")]
    total: Annotated[PaidTotal, doc("Total spending in that time, whatever the page shows.")]
    paid: Annotated[list[PaidGroup], doc("Spending in groups, the largest first.")]
    leases: Annotated[
        list[JobUsage], doc("The leases of the account's own jobs, whoever paid, the latest first.")
    ]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class IdleGuardRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """When a job counts as idle: such a job is warned, and drained if it stays idle."""

    window_seconds: Annotated[GuardSeconds, GUARD_WINDOW] = 0
    utilization_percent: Annotated[GuardPercent, GUARD_UTILIZATION] = (
        idle_guard.UTILIZATION_PERCENT_DEFAULT
    )
    memory_percent: Annotated[Percent, GUARD_MEMORY] = 0
    startup_seconds: Annotated[GuardSeconds, GUARD_STARTUP] = idle_guard.STARTUP_MS_DEFAULT // 1_000
    warning_seconds: Annotated[GuardSeconds, GUARD_WARNING] = idle_guard.WARNING_MS_DEFAULT // 1_000
    grace_seconds: Annotated[GuardSeconds, GUARD_GRACE] = idle_guard.GRACE_MS_DEFAULT // 1_000


class IdleGuardChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of the guard to change; others stay, and null restores the default."""

    window_seconds: Annotated[GuardSeconds | UnsetType | None, GUARD_WINDOW] = UNSET
    utilization_percent: Annotated[GuardPercent | UnsetType | None, GUARD_UTILIZATION] = UNSET
    memory_percent: Annotated[Percent | UnsetType | None, GUARD_MEMORY] = UNSET
    startup_seconds: Annotated[GuardSeconds | UnsetType | None, GUARD_STARTUP] = UNSET
    warning_seconds: Annotated[GuardSeconds | UnsetType | None, GUARD_WARNING] = UNSET
    grace_seconds: Annotated[GuardSeconds | UnsetType | None, GUARD_GRACE] = UNSET


class IdleGuardAnswer(Struct, kw_only=True):
    """The idle guard in force for an account; ``source`` is the account that it was set for."""

    account: Annotated[str, ACCOUNT]
    window_seconds: Annotated[int, GUARD_WINDOW]
    utilization_percent: Annotated[int, GUARD_UTILIZATION]
    memory_percent: Annotated[int, GUARD_MEMORY]
    startup_seconds: Annotated[int, GUARD_STARTUP]
    warning_seconds: Annotated[int, GUARD_WARNING]
    grace_seconds: Annotated[int, GUARD_GRACE]
    source: Annotated[
        str | None, doc("The account that the guard was set for; null if there is no guard.")
    ] = None
    set_by_scope: Annotated[AuthorityName | None, SET_BY_SCOPE] = None


def idle_terms_from_wire(request: IdleGuardRequest) -> idle_guard.IdleTerms:
    """The core's terms."""
    return idle_guard.IdleTerms(
        window_ms=request.window_seconds * 1_000,
        utilization_percent=request.utilization_percent,
        memory_percent=request.memory_percent,
        startup_ms=request.startup_seconds * 1_000,
        warning_ms=request.warning_seconds * 1_000,
        grace_ms=request.grace_seconds * 1_000,
    )
