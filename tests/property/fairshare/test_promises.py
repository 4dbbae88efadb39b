"""Backfill among liars: whoever outstays its time delays the head by no more than the grace."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.snapshot import PoolSnapshot, RunningJob, WaitingRequest

STEP = 30_000_000
GRACE = 30_000_000  # the policy's default
END = 200 * STEP

SIZES = st.integers(1, 5)
BASES = st.lists(st.tuples(SIZES, st.integers(1, 40)), min_size=1, max_size=4)
LIARS = st.lists(
    st.tuples(SIZES, st.one_of(st.none(), st.integers(1, 40)), st.integers(0, 40)), max_size=8
)


@given(bases=BASES, liars=LIARS, spare=st.integers(0, 4), want=st.integers(1, 24))
@settings(max_examples=300, deadline=None)
def test_liars_delay_the_head_by_no_more_than_the_grace(
    bases: list[tuple[int, int]],
    liars: list[tuple[int, int | None, int]],
    spare: int,
    want: int,
) -> None:
    """What runs first is honest; what overtakes never ends by itself, whatever it said."""
    capacity = sum(gpus for gpus, _ in bases) + spare
    running = [
        RunningJob(f"base-{n}", "a", (gpus,), started_at=0, expected_end=steps * STEP)
        for n, (gpus, steps) in enumerate(bases)
    ]
    head = WaitingRequest("head", "a", (min(want, capacity),), priority=1)
    came: dict[str, WaitingRequest] = {
        f"liar-{n}": WaitingRequest(
            f"liar-{n}",
            "a",
            (gpus,),
            submitted_at=1 + at * STEP,
            duration_ms=None if steps is None else steps * STEP // 1_000,
        )
        for n, (gpus, steps, at) in enumerate(liars)
    }
    frozen = PoolSnapshot(pool="p", now=0, capacity=(("gpu", capacity),))
    promised_start: int | None = None
    for now in range(0, END, STEP):
        running = [job for job in running if _runs(job, now)]
        due = [each for each in came.values() if each.submitted_at <= now + 1]
        decisions = decide(replace(frozen, now=now, running=tuple(running), waiting=(head, *due)))
        starts = {row.request_id: row for row in decisions.admissions}
        if "head" in starts:
            break
        told = next(row.starts_at for row in decisions.waiting if row.request_id == "head")
        assert told is not None
        promised_start = told if promised_start is None else promised_start
        assert told <= promised_start + GRACE
        stops = {row.job_id: row.stop_at for row in decisions.preemptions}
        running = [
            job._replace(stopping_at=stops[job.job_id]) if job.job_id in stops else job
            for job in running
        ]
        for name, row in starts.items():
            asked = came.pop(name)
            end = None if asked.duration_ms is None else now + asked.duration_ms * 1_000
            kept = end if row.overtakes else None
            running.append(RunningJob(name, "a", asked.amounts, 0, now, end, promised_end=kept))
    else:
        raise AssertionError("the head never started")
    assert promised_start is None or now <= promised_start + GRACE


def _runs(job: RunningJob, now: int) -> bool:
    """Honest work ends when it said, and whoever was told to stop by then."""
    if job.stopping_at is not None:
        return job.stopping_at > now
    return not job.job_id.startswith("base") or (job.expected_end or 0) > now
