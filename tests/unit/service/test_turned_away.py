"""What a request that does not wait is told of its pool."""

from __future__ import annotations

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import WaitReason, as_told, shares_of, verdict_of
from gpucredits.core.fairshare.snapshot import PoolSnapshot, RunningJob, WaitingRequest

HOUR = 3_600_000_000


def test_nobody_is_told_of_work_that_is_stopped_for_somebody_who_waits() -> None:
    """A plain request would make its room if it waited; it hears how many GPUs are free."""
    pool = PoolSnapshot(
        pool="h100/default",
        now=HOUR,
        capacity=(("gpu", 8_000),),
        running=(RunningJob("a", "hog", (3_000,)), RunningJob("b", "hog", (3_000,))),
        waiting=(WaitingRequest("mine", "meek", (4_000,)),),
    )
    decisions = decide(pool)
    [row] = decisions.waiting
    assert (row.reason, row.available) == (WaitReason.MAKING_ROOM, 2_000)
    verdict = verdict_of(pool, as_told(row), "meek", shares_of(decisions))
    assert verdict.sentence == "It needs 4 GPUs, and 2 are free."
    assert verdict.clears_at is None
