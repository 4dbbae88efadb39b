"""The idle guard: a window and not a lifetime, readiness, memory, processes; warn, then drain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from gpucredits.core.rules.leases.idle_guard import (
    BUSY,
    GpuSample,
    IdleAct,
    IdleStanding,
    IdleTerms,
    IdleWatch,
    JobSample,
    judged,
    watched,
)

TERMS = IdleTerms(window_ms=600_000, startup_ms=300_000, warning_ms=120_000)
STEP_MS = 15_000
WORKS = GpuSample(80, 50, has_process=True)
WAITS = GpuSample(0, 50, has_process=True)
NOBODY = GpuSample(0, 0, has_process=False)
UNKNOWN = GpuSample(None, None, None)


def lived(
    life: Iterable[tuple[int, Sequence[GpuSample]]], terms: IdleTerms = TERMS
) -> list[tuple[int, IdleStanding]]:
    """Where a job stood after each sample of its life: (minutes, GPUs) in turn."""
    watch, standing, now_ms, seen = IdleWatch(), BUSY, 0, []
    for minutes, gpus in life:
        for _ in range(minutes * 60_000 // STEP_MS):
            now_ms += STEP_MS
            if gpus:
                watch = watched(watch, JobSample(now_ms, tuple(gpus)), terms)
            standing = judged(standing, watch, terms, started_ms=0, now_ms=now_ms)
            seen.append((now_ms // 1_000, standing))
            assert len(watch.samples) <= 62
    return seen


def acts(seen: Sequence[tuple[int, IdleStanding]]) -> list[tuple[int, IdleAct]]:
    """When the guard wanted something else: seconds and acts."""
    changes = [(0, IdleAct.NOTHING)]
    for at_s, standing in seen:
        if standing.act is not changes[-1][1]:
            changes.append((at_s, standing.act))
    return changes[1:]


def test_a_job_that_stopped_working_is_warned_and_drained() -> None:
    """By the last window: an hour of work before it saves nobody."""
    seen = lived([(60, [WORKS]), (30, [WAITS])])
    (warned_s, warn), (drained_s, drain) = acts(seen)
    assert (warn, drain) == (IdleAct.WARN, IdleAct.DRAIN)
    assert 3_600 + 540 < warned_s <= 3_600 + 600
    assert drained_s - warned_s == 120
    sentences = [standing.sentence for _, standing in seen if standing.act is IdleAct.WARN]
    assert (
        "below 5% for 10m on all 1 GPUs, 50% of memory held: the job drains in 2m" in sentences[0]
    )


def test_work_takes_a_warning_back() -> None:
    """And the next warning begins anew."""
    seen = lived([(1, [WORKS]), (10, [WAITS]), (3, [WORKS]), (11, [WAITS])])
    assert [act for _, act in acts(seen)] == [IdleAct.WARN, IdleAct.NOTHING, IdleAct.WARN]


def test_the_timer_starts_when_the_job_is_ready() -> None:
    """A job that loads for long has its startup; one that used a GPU early begins then."""
    ((never_used_s, _), _) = acts(lived([(30, [NOBODY])]))
    assert never_used_s == 300 + 600
    ((used_s, _), _) = acts(lived([(1, [NOBODY]), (30, [WAITS])]))
    assert used_s == 75 + 600


@pytest.mark.parametrize(
    ("gpus", "act"),
    [
        ([WAITS], IdleAct.DRAIN),
        ([NOBODY], IdleAct.DRAIN),
        ([WAITS, NOBODY], IdleAct.DRAIN),
        ([WORKS], IdleAct.NOTHING),
        ([GpuSample(5, 0, has_process=True)], IdleAct.NOTHING),  # at the threshold
        ([GpuSample(4, 0, has_process=True)], IdleAct.DRAIN),
        ([WORKS, WAITS], IdleAct.NOTHING),  # one of its GPUs works, the other has a process
        ([WORKS, NOBODY], IdleAct.WARN),  # told, and never ended for it
        ([UNKNOWN], IdleAct.NOTHING),  # nobody knows: nobody is ended
        ([GpuSample(None, 90, has_process=True)], IdleAct.NOTHING),
        ([GpuSample(None, None, has_process=False)], IdleAct.DRAIN),
        ([], IdleAct.NOTHING),
    ],
)
def test_what_counts_as_idle(gpus: list[GpuSample], act: IdleAct) -> None:
    """Utilisation below the threshold on every GPU, or no process; what is unknown is not idle."""
    assert lived([(40, gpus)])[-1][1].act is act


def test_memory_that_is_held_can_count_as_use() -> None:
    """For servers that keep a model and wait; only where the terms say so, and only if held."""
    keeps = IdleTerms(window_ms=600_000, startup_ms=0, warning_ms=0, memory_percent=40)
    assert lived([(40, [WAITS])], keeps)[-1][1].act is IdleAct.NOTHING
    little = GpuSample(0, 39, has_process=True)
    assert lived([(40, [little])], keeps)[-1][1].act is IdleAct.DRAIN


def test_the_guard_is_off_unless_it_is_set() -> None:
    """No window, no guard."""
    assert not acts(lived([(40, [NOBODY])], IdleTerms(startup_ms=0)))


def test_a_gap_in_the_readings_is_no_idleness() -> None:
    """A meter that failed for half a window: the guard waits for a whole window of readings."""
    seen = lived([(1, [WAITS]), (6, []), (9, [WAITS])])
    ((warned_s, _), *_) = acts(seen)
    assert warned_s > (1 + 6) * 60 + 300


def test_a_draining_job_stays_so() -> None:
    """Work that begins after the order does not take it back."""
    assert lived([(20, [NOBODY]), (9, [WORKS])])[-1][1].act is IdleAct.DRAIN


def test_joined_samples_keep_the_mean() -> None:
    """A long window keeps few samples, and a burst in it counts as much as it was."""
    terms = IdleTerms(window_ms=24 * 3_600_000, startup_ms=0, warning_ms=0)
    watch = IdleWatch()
    for number in range(1, 4 * 60 * 26):
        gpu = GpuSample(100 if number % 16 == 0 else 0, None, has_process=None)
        watch = watched(watch, JobSample(number * STEP_MS, (gpu,)), terms)
    assert len(watch.samples) <= 62
    gpus = [sample.gpus[0] for sample in watch.samples]
    mean = sum(gpu.utilization or 0 for gpu in gpus) / sum(gpu.readings for gpu in gpus)
    assert 6 <= mean <= 6.5
