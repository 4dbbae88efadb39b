"""Quotas: how much an account may run at once, spend in a window, or spend on one job.

Owns: the rows of quotas and of what they have counted, and the arithmetic of windows: which window
an instant lies in, and how a slice of spending is spread over the windows it crosses.
Must not: decide what happens when a quota is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gpucredits.core.authority import Authority
from gpucredits.core.bounds import MINUTE_US
from gpucredits.core.gate import GateUnit
from gpucredits.core.period import Calendar, period_at

CELLS = 60  # a rolling window moves on in steps of a sixtieth: n minutes for n hours


class Dimension(IntEnum):
    """What a quota limits, in the order in which they are checked at each scope.

    CONTRIBUTING.md lists every place that a new one goes to.
    """

    CREDITS_PER_JOB = 0  # for all leases of a job together
    CONCURRENT_GPUS = 1
    CONCURRENT_JOBS = 2
    CREDITS_PER_WINDOW = 3


def unit_of(dimension: Dimension) -> GateUnit:
    """What the numbers of a quota count."""
    match dimension:
        case Dimension.CONCURRENT_GPUS:
            return GateUnit.GPUS
        case Dimension.CONCURRENT_JOBS:
            return GateUnit.JOBS
        case Dimension.CREDITS_PER_JOB | Dimension.CREDITS_PER_WINDOW:
            return GateUnit.CREDITS


@dataclass(slots=True)
class Quota:
    """One limit of one account, for all GPU types or for one.

    A quota on credits per window has either a calendar and a zone, or a number of rolling hours.
    An ended quota stays on record and limits nothing. It began with ``seeded`` credits that were
    spent before, and has counted every entry from ``first_entry_id`` on. ``set_by`` is the scope of
    the key that set it: each scope may have a quota of its own that is the same but for the limit.
    """

    quota_id: int
    account_id: int
    dimension: Dimension
    limit: int
    gpu_type: str = ""
    calendar: Calendar | None = None
    zone: str = "UTC"
    rolling_hours: int = 0
    created_at: int = 0
    ended_at: int = 0
    seeded: int = 0
    first_entry_id: int = 0
    set_by: Authority = Authority.SYSTEM


@dataclass(slots=True)
class Counter:
    """What a quota counts now.

    ``count`` is GPUs or jobs that run, ``leaving`` those of them that were told to go. For a
    window, ``used`` is what was settled in it and ``held`` what live leases hold now and may
    overdraw beyond it. ``starts_at`` and ``ends_at`` bound the calendar window, or the cell that a
    rolling window is in; ``base`` is how much of ``used`` lies in the rolling window's earlier
    cells.
    """

    quota_id: int
    count: int = 0
    leaving: int = 0
    used: int = 0
    held: int = 0
    base: int = 0
    starts_at: int = 0
    ends_at: int = 0


@dataclass(slots=True)
class Tally:
    """What was settled in one past window, or one past cell of a rolling window."""

    quota_id: int
    starts_at: int
    ends_at: int
    used: int


@dataclass(slots=True)
class JobLeases:
    """The leases that a job of an account has and had, of one GPU type or (empty) of any.

    ``live`` of them run, and ``leaving`` of these were told to go. For quotas on credits per job,
    ``leases`` are those that run and ``settled`` is what those that have ended cost. It can be
    counted from the reservations at any time.
    """

    account_id: int
    job_id: str
    gpu_type: str
    live: int = 0
    leaving: int = 0
    settled: int = 0
    leases: tuple[int, ...] = ()


def window_at(quota: Quota, at: int) -> tuple[int, int]:
    """The calendar window or the rolling window's cell [start, end) that an instant lies in."""
    if quota.calendar is not None:
        return period_at(quota.calendar, quota.zone, at)
    cell = quota.rolling_hours * MINUTE_US
    starts_at = at - at % cell
    return starts_at, starts_at + cell


def reach(quota: Quota) -> int:
    """How far before its current cell a window still counts: nothing for a calendar window.

    A rolling window counts the cell that it is leaving in full, so that no stretch of its length
    ever holds more than the limit.
    """
    return quota.rolling_hours * MINUTE_US * CELLS


def spread(quota: Quota, due: int, since: int, now: int) -> list[tuple[int, int, int]]:
    """(start, end, part) of a slice in each window it crosses, in order; parts add up to ``due``.

    The slice is spread evenly over [since, now). What lies before a boundary is rounded down to the
    micro-credit and the rest lies after it, so nothing is lost or counted twice.
    """
    elapsed = now - since
    parts = []
    starts_at, ends_at = window_at(quota, since)
    counted = 0
    while ends_at < now:
        before = due * (ends_at - since) // elapsed
        parts.append((starts_at, ends_at, before - counted))
        counted = before
        starts_at, ends_at = window_at(quota, ends_at)
    parts.append((starts_at, ends_at, due - counted))
    return parts
