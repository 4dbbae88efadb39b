"""Use on the wire: what nodes measured, deduplicated by seq, and what was paid for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.reservation import GpuCount, Seq, UsedMs
from gpucredits.wire.scalars import AccountPath, CreditsText, InstantText, Name

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
    gpu_type: Name | None = None
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
    """What one lease used and was charged, beside what was measured."""

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


class PaidGroup(Struct, kw_only=True):
    """What one job, account, type of GPU or day cost."""

    name: str
    spent: CreditsText
    reservations: int


class UsagePage(Struct, kw_only=True):
    """Use of an account and everything below it.

    ``paid`` is what it paid for in the time asked for, in groups, the largest first; ``leases``
    are those of its own jobs, whoever paid, the latest first.
    """

    account: str
    since: InstantText
    until: InstantText
    by: GroupingName
    paid: list[PaidGroup]
    leases: list[JobUsage]
    next_cursor: str | None = None
