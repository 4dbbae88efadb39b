"""What a request that does not wait is told of its pool."""

from __future__ import annotations

import pytest

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import WaitReason, as_told, shares_of, verdict_of
from gpucredits.core.fairshare.snapshot import PoolSnapshot, RunningJob, WaitingRequest
from gpucredits.core.rules.limits.gates import pool_reports
from gpucredits.wire.gate import GateAnswer, gates_to_wire

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


def reports_of(capacity: dict[str, int], needed: dict[str, int]) -> list[GateAnswer]:
    """What a pool with half of everything taken says of a request, on the wire."""
    pool = PoolSnapshot(
        pool="h100/default",
        now=HOUR,
        capacity=tuple(capacity.items()),
        running=(RunningJob("a", "hog", tuple(amount // 2 for amount in capacity.values())),),
        waiting=(WaitingRequest("mine", "meek", tuple(needed.values())),),
    )
    decisions = decide(pool)
    [row] = decisions.waiting
    verdict = verdict_of(pool, as_told(row), "meek", shares_of(decisions))
    return gates_to_wire(pool_reports("meek", "h100", "default", verdict))


@pytest.mark.parametrize(
    ("needed", "says", "because"),
    [
        (
            {"gpu": 9_000, "cpu": 0},
            "It needs 9 GPUs, and the whole pool has 8.",
            "the pool has 8 GPUs",
        ),
        (
            {"gpu": 1_000, "cpu": 33},
            "It needs 33 CPUs, and the whole pool has 32.",
            "the pool has 32 CPUs",
        ),
    ],
)
def test_what_is_larger_than_the_whole_pool_is_told_that_waiting_is_useless(
    needed: dict[str, int], says: str, because: str
) -> None:
    """Of GPUs and of what else a pool has: never, why, and what to do."""
    [report] = reports_of({"gpu": 8_000, "cpu": 32}, needed)
    assert not report.passes
    assert report.never_because == because
    assert report.clears_at is None
    advice = "It never clears by waiting: ask for less, or have the pool's capacity raised."
    assert report.sentence == f"{says} {advice}"


@pytest.mark.parametrize(("capacity", "needed"), [(8_000, 8_000), (0, 1_000)])
def test_what_a_pool_may_have_room_for_one_day_is_not_told_never(
    capacity: int, needed: int
) -> None:
    """A full pool empties, and a drained pool has no size: its GPUs may come back."""
    [report] = reports_of({"gpu": capacity}, {"gpu": needed})
    assert not report.passes
    assert report.never_because is None
    assert "never" not in report.sentence
