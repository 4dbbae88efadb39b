"""Use on the wire: what nodes measured, deduplicated by seq, and what was paid for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.documented import (
    ACCOUNT,
    GPU_COUNT,
    GPU_TYPE,
    JOB_ID,
    NEXT_CURSOR,
    NODE,
    RESERVATION_ID,
    RESULTS,
    SETTLED,
    USED_MS,
    doc,
)
from gpucredits.wire.reservation import GpuCount, Seq, UsedMs
from gpucredits.wire.scalars import AccountPath, CreditsText, GpuType, InstantText, Name

EVENTS_MAX = 5_000

GroupingName = Literal["job", "account", "gpu_type", "day"]
Percent = Annotated[int, Meta(ge=0, le=100)]


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
        Literal["stored", "duplicate", "unknown"],
        doc("stored, duplicate, or unknown if there is no such lease."),
    ]


class UsageResults(Struct, kw_only=True):
    """One result for each event, in order."""

    results: Annotated[list[UsageResult], RESULTS]
    stored: Annotated[int, doc("The number of new events.")]
    duplicates: Annotated[int, doc("The number of events that had been stored before.")]


class JobUsage(Struct, kw_only=True):
    """What one lease used and was charged, beside what was measured.

    ``spent`` is of the time asked for. All other numbers are of the whole lease.
    """

    reservation_id: Annotated[str, RESERVATION_ID]
    account: Annotated[str, ACCOUNT]
    job_id: Annotated[str, JOB_ID]
    gpu_type: Annotated[str, GPU_TYPE]
    gpu_count: Annotated[int, GPU_COUNT]
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
    reservations: Annotated[int, doc("The number of leases.")]


class PaidTotal(Struct, kw_only=True):
    """What was paid for in the time asked for, in all: always whole, whatever the page shows."""

    spent: Annotated[CreditsText, doc("Total credits spent, less refunds.")]
    reservations: Annotated[int, doc("The number of leases that were paid for.")]
    groups: Annotated[int, doc("The number of groups.")]


class UsagePage(Struct, kw_only=True):
    """Use of an account and everything below it from ``since`` until before ``until``.

    ``total`` is what the account paid for in that time, in all. ``paid`` has the same in groups,
    the largest first. ``leases`` are those of the account's own jobs that ran in that time, or were
    charged or corrected in it, whoever paid, the latest first. Both lists go on at ``next_cursor``.
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
