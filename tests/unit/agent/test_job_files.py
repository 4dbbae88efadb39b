"""When a job saved its work, by the time of a file; and what is due to the server then."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpucredits.agent import job_files
from gpucredits.agent.job_files import JobFiles
from gpucredits.client.errands import Errands
from gpucredits.wire.access.tokens import TokenAnswer
from gpucredits.wire.reconciliation.lost_work import CheckpointAnswer

NOW_MS = 1_000_000
WALL_NS = 1_700_000_000_000_000_000


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFiles:
    """The files of a job, last looked at 10 s ago, by clocks that stand."""
    monkeypatch.setattr(job_files, "clock_ms", lambda: NOW_MS)
    monkeypatch.setattr(time, "time_ns", lambda: WALL_NS)
    made = JobFiles(tmp_path, Errands(reservation_id="rsv_1_1"), _looked_at_ms=NOW_MS - 10_000)
    made.checkpoint.touch()
    return made


@pytest.mark.parametrize(
    ("ago_ms", "ended_ago_ms", "told"),
    [
        (0, 0, 60_000),
        (4_000, 0, 56_000),
        (3_600_000, 0, 50_000),  # a clock that jumped: not before the last look
        (-3_600_000, 0, 60_000),
        (7_000, 5_000, 58_000),  # it ended meanwhile
    ],
)
def test_a_touch_is_a_checkpoint_of_its_time(
    files: JobFiles, ago_ms: int, ended_ago_ms: int, told: int
) -> None:
    """By the use at the touch, within the time since the last look, whatever the wall clock."""
    touched = WALL_NS - ago_ms * 1_000_000
    os.utime(files.checkpoint, ns=(touched, touched))
    files.look(60_000, NOW_MS - ended_ago_ms)
    (call,) = files.errands.due(NOW_MS)
    assert call.body == b'{"checkpoint_ms":%d}' % told


def test_a_file_that_nobody_touched_is_no_checkpoint(files: JobFiles) -> None:
    """Nor is one that was seen before, or that is gone."""
    os.utime(files.checkpoint, ns=(0, 0))
    files.look(60_000, NOW_MS)
    assert files.errands.due(NOW_MS) == []
    os.utime(files.checkpoint, ns=(WALL_NS, WALL_NS))
    files.look(60_000, NOW_MS)
    (_,) = files.errands.due(NOW_MS)
    files.errands.heard(CheckpointAnswer(reservation_id="rsv_1_1", checkpoint_ms=1), NOW_MS)
    files.look(70_000, NOW_MS)
    assert files.errands.due(NOW_MS) == []
    files.checkpoint.unlink()
    files.look(80_000, NOW_MS)
    assert files.errands.due(NOW_MS) == []


def test_what_was_not_heard_is_due_again() -> None:
    """A later checkpoint that came between question and answer is due as well."""
    errands = Errands(reservation_id="rsv_1_1")
    errands.saved(5)
    assert len(errands.due(0)) == len(errands.due(0)) == 1
    errands.saved(9)
    errands.heard(CheckpointAnswer(reservation_id="rsv_1_1", checkpoint_ms=5), 0)
    (call,) = errands.due(0)
    assert call.body == b'{"checkpoint_ms":9}'


def test_a_token_is_renewed_at_half_of_its_life() -> None:
    """And never for a job that wants none."""
    assert Errands(reservation_id="rsv_1_1").due(0) == []
    errands = Errands(reservation_id="rsv_1_1", wants_token=True)
    assert len(errands.due(0)) == 1
    answer = TokenAnswer(
        token="t",
        token_id="i",
        key_id="k",
        reservation_id="rsv_1_1",
        node="",
        expires_at="2026-03-01T12:00:00.000000Z",
        expires_in_ms=1_000,
    )
    errands.heard(answer, 100)
    assert errands.token == "t"
    assert errands.due(599) == []
    assert len(errands.due(600)) == 1
