"""The idle guard: finds jobs that leave their GPUs unused, to warn and then drain them.

Owns: the terms of the guard and its decision, a pure function of the samples in the last window. A
job that worked long ago and not since is idle; a job that has just begun is not.
Must not: read a clock or a GPU, or touch a process; the agent of the node does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

from gpucredits.core.duration import format_ms

WINDOW_MS_MIN: Final = 60_000
WINDOW_MS_MAX: Final = 24 * 3_600_000
STARTUP_MS_DEFAULT: Final = 600_000
WARNING_MS_DEFAULT: Final = 300_000
GRACE_MS_DEFAULT: Final = 60_000
UTILIZATION_PERCENT_DEFAULT: Final = 5
BUCKETS_IN_WINDOW: Final = 60  # the most samples that are kept of a window
GAPS_IN_WINDOW: Final = 2  # a gap of half a window means that nobody knows


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTerms:
    """A job is idle below a percentage over the window. Without a window, the guard is off.

    If ``memory_percent`` is set, GPUs with at least this part of their memory in use are busy. The
    window begins with the job's first use of a GPU, or ``startup_ms`` after its start.
    """

    window_ms: int = 0
    utilization_percent: int = UTILIZATION_PERCENT_DEFAULT
    memory_percent: int = 0
    startup_ms: int = STARTUP_MS_DEFAULT
    warning_ms: int = WARNING_MS_DEFAULT
    grace_ms: int = GRACE_MS_DEFAULT

    @property
    def is_on(self) -> bool:
        """Whether jobs are guarded at all."""
        return self.window_ms > 0


@dataclass(frozen=True, slots=True)
class GpuSample:
    """A job's load on one of its GPUs: percent, and whether it had a process; None if unknown.

    ``utilization`` is the sum over the ``readings`` that were joined.
    """

    utilization: int | None = None
    memory_percent: int | None = None
    has_process: bool | None = None
    readings: int = 1


@dataclass(frozen=True, slots=True)
class JobSample:
    """A job's load on each of its GPUs up to an instant."""

    at_ms: int
    gpus: tuple[GpuSample, ...]


@dataclass(frozen=True, slots=True)
class IdleWatch:
    """The state of watching a job: samples of the last window, and its first use of a GPU."""

    samples: tuple[JobSample, ...] = ()
    ready_at_ms: int | None = None


class IdleAct(Enum):
    """The guard's decision."""

    NOTHING = "nothing"
    WARN = "warn"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class IdleStanding:
    """A job's standing with the guard: since when it is warned, and why."""

    act: IdleAct = IdleAct.NOTHING
    warned_at_ms: int | None = None
    sentence: str = ""


BUSY: Final = IdleStanding()


def judged(
    before: IdleStanding,
    watch: IdleWatch,
    terms: IdleTerms,
    *,
    started_ms: int,
    now_ms: int,
) -> IdleStanding:
    """A job's standing now. A warned job that stays idle drains when the warning ends."""
    if before.act is IdleAct.DRAIN:
        return before
    window = window_of(watch, terms, started_ms=started_ms, now_ms=now_ms)
    if not window:
        return BUSY
    gpus = list(zip(*(sample.gpus for sample in window), strict=True))
    unused = [is_unused(each) for each in gpus]
    idle = [is_idle(each, terms) for each in gpus]
    if not any(unused) and not all(idle):
        return BUSY
    warned_at_ms = now_ms if before.warned_at_ms is None else before.warned_at_ms
    over_ms = format_ms(terms.window_ms)
    if not all(idle):  # some GPUs work, so the job is told and not ended
        text = f"{sum(unused)} of {len(gpus)} GPUs had no process for {over_ms}"
        return IdleStanding(IdleAct.WARN, warned_at_ms, f"{text}: ask for fewer.")
    text = f"all {len(gpus)} GPUs had no process for {over_ms}"
    if not all(unused):
        held = max((each[-1].memory_percent or 0 for each in gpus), default=0)
        text = (
            f"utilisation was below {terms.utilization_percent}% for {over_ms} on all "
            f"{len(gpus)} GPUs, {held}% of memory held"
        )
    left_ms = warned_at_ms + terms.warning_ms - now_ms
    if before.act is IdleAct.WARN and left_ms <= 0:
        return IdleStanding(IdleAct.DRAIN, warned_at_ms, f"{text}.")
    return IdleStanding(
        IdleAct.WARN, warned_at_ms, f"{text}: the job drains in {format_ms(max(left_ms, 0))}."
    )


def window_of(
    watch: IdleWatch, terms: IdleTerms, *, started_ms: int, now_ms: int
) -> Sequence[JobSample]:
    """The samples of the last window; empty before the window is full, or if it has gaps."""
    if not terms.is_on:
        return ()
    begins_ms = now_ms - terms.window_ms
    latest_ms = started_ms + terms.startup_ms
    ready_ms = latest_ms if watch.ready_at_ms is None else min(watch.ready_at_ms, latest_ms)
    if ready_ms > begins_ms:
        return ()
    inside = [each for each in watch.samples if each.at_ms > begins_ms]
    gap_ms_max = terms.window_ms // GAPS_IN_WINDOW
    instants = [begins_ms, *(each.at_ms for each in inside), now_ms]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    alike = {len(each.gpus) for each in inside}
    return inside if max(gaps) <= gap_ms_max and len(alike) == 1 and 0 not in alike else ()


def is_busy(gpu: GpuSample, terms: IdleTerms) -> bool:
    """Whether one sample shows work."""
    if gpu.utilization is None:
        return False
    return gpu.utilization >= terms.utilization_percent * gpu.readings


def is_unused(gpu: Sequence[GpuSample]) -> bool:
    """Whether a GPU had no process in any sample."""
    return all(each.has_process is False for each in gpu)


def is_idle(gpu: Sequence[GpuSample], terms: IdleTerms) -> bool:
    """Whether a GPU was unused: no process, or too little load on average. Unknown is not idle."""
    if is_unused(gpu):
        return True
    known = [each.utilization for each in gpu if each.utilization is not None]
    readings = sum(each.readings for each in gpu)
    if len(known) < len(gpu) or sum(known) >= terms.utilization_percent * readings:
        return False
    held = [each.memory_percent or 0 for each in gpu]
    return not terms.memory_percent or min(held) < terms.memory_percent


def watched(watch: IdleWatch, fresh: JobSample, terms: IdleTerms) -> IdleWatch:
    """The state after a new sample, which is joined to the last if both fall in one step.

    A window has a bounded number of steps; samples before the window are dropped.
    """
    step_ms = max(terms.window_ms // BUCKETS_IN_WINDOW, 1)
    ready_at_ms = watch.ready_at_ms
    is_used = any(each.has_process or is_busy(each, terms) for each in fresh.gpus)
    if ready_at_ms is None and is_used:
        ready_at_ms = fresh.at_ms
    rows = list(watch.samples)
    if rows and is_joinable(rows[-1], fresh, step_ms):
        rows[-1] = joined(rows[-1], fresh)
    else:
        rows.append(fresh)
    begins_ms = fresh.at_ms - terms.window_ms - step_ms
    return IdleWatch(tuple(each for each in rows if each.at_ms > begins_ms), ready_at_ms)


def is_joinable(last: JobSample, fresh: JobSample, step_ms: int) -> bool:
    """Whether two samples fall in one step and have the same GPUs."""
    return last.at_ms // step_ms == fresh.at_ms // step_ms and len(last.gpus) == len(fresh.gpus)


def joined(first: JobSample, second: JobSample) -> JobSample:
    """One sample for two: the sum of the load, the larger memory, any process."""
    gpus = []
    for one, other in zip(first.gpus, second.gpus, strict=True):
        work = None
        if one.utilization is not None and other.utilization is not None:
            work = one.utilization + other.utilization
        seen = (one.has_process, other.has_process)
        gpus.append(
            GpuSample(
                work,
                max(one.memory_percent or 0, other.memory_percent or 0),
                True if True in seen else None if None in seen else False,
                one.readings + other.readings,
            )
        )
    return JobSample(second.at_ms, tuple(gpus))
