"""Why a supervised job ended, by the deadlines that its guardian was given."""

from __future__ import annotations

import pytest

from gpucredits.agent.job import SupervisedJob
from gpucredits.client.standing import Standing


@pytest.mark.parametrize(
    ("given", "ended_at_ms", "because"),
    [
        ([(0, 5_000)], 5_001, "expired"),
        ([(0, 5_000)], 4_999, ""),
        ([(0, 5_000), (5_010, 9_000)], 5_001, "expired"),  # the answer came while it was killed
        ([(0, 5_000), (4_990, 9_000)], 5_001, "expired"),  # and was on its way to the guardian
        ([(0, 5_000), (2_000, 9_000)], 6_000, ""),  # renewed in time, ended by itself
        ([(0, 9_000), (2_000, 5_000)], 5_002, "expired"),  # shortened
    ],
)
def test_a_job_ended_because_of_the_deadline_that_was_in_force(
    given: list[tuple[int, int]], ended_at_ms: int, because: str
) -> None:
    """Neither a deadline that was replaced in time nor one that came too late is the reason."""
    standing = Standing(ends_at_ms=given[-1][1], beat_at_ms=0)
    job = SupervisedJob(reservation_id="rsv_1_1", standing=standing)
    job._given.extend(given)
    job.run_time.hear("started 10 7 7")
    job.run_time.hear(f"ended {ended_at_ms} -9")
    assert job.ended_because == because
