"""Use on the wire: what nodes measured, deduplicated by seq, and what was paid for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.reservation import GpuCount, Seq, UsedMs
from gpucredits.wire.scalars import AccountPath, CreditsText, GpuType, InstantText, Name

EVENTS_MAX = 5_000

GroupingName = Literal["job", "account", "gpu_type", "day"]
Percent = Annotated[int, Meta(ge=0, le=100)]


class UsageEvent(Struct, kw_only=True, forbid_unknown_fields=True):
    """What one node measured for one lease between two moments of its monotonic clock.

    It names its reservation, or else its account and job.
    """

    seq: Seq
    start_ms: UsedMs
    end_ms: UsedMs
    reservation_id: str | None = None
    account: AccountPath | None = None
    job_id: Name | None = None
    node: Name | None = None
    gpu_type: GpuType | None = None
    gpu_count: GpuCount | None = None
    gpu_utilization: Percent | None = None


class UsageRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Events of one node; milliseconds count from the lease's admission."""

    events: Annotated[list[UsageEvent], Meta(max_length=EVENTS_MAX)]
    node: Name | None = None


class UsageResult(Struct, kw_only=True, omit_defaults=True):
    """What became of one event."""

    seq: int
    reservation_id: str | None = None
    job_id: str | None = None
    status: Literal["stored", "duplicate", "unknown"]


class UsageResults(Struct, kw_only=True):
    """One result for each event, in order."""

    results: list[UsageResult]
    stored: int
    duplicates: int


class JobUsage(Struct, kw_only=True):
    """What one lease used and was charged, beside what was measured.

    ``spent`` is of the time asked for. All other numbers are of the whole lease.
    """

    reservation_id: str
    account: str
    job_id: str
    gpu_type: str
    gpu_count: int
    used_ms: int
    gpu_ms: int
    settled: CreditsText
    adjusted: CreditsText
    refunded: CreditsText
    charged: CreditsText
    measured_ms: int
    events: int
    late_ms: int
    admitted_at: InstantText
    spent: CreditsText


class PaidGroup(Struct, kw_only=True):
    """What one job, account, type of GPU or day cost."""

    name: str
    spent: CreditsText
    reservations: int


class PaidTotal(Struct, kw_only=True):
    """What was paid for in the time asked for, in all: always whole, whatever the page shows."""

    spent: CreditsText
    reservations: int
    groups: int


class UsagePage(Struct, kw_only=True):
    """Use of an account and everything below it from ``since`` until before ``until``.

    ``total`` is what the account paid for in that time, in all. ``paid`` has the same in groups,
    the largest first. ``leases`` are those of the account's own jobs that ran in that time, or were
    charged or corrected in it, whoever paid, the latest first. Both lists go on at ``next_cursor``.
    """

    account: str
    since: InstantText
    until: InstantText
    by: GroupingName
    total: PaidTotal
    paid: list[PaidGroup]
    leases: list[JobUsage]
    next_cursor: str | None = None
