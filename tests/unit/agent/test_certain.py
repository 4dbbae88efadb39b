"""What a job has used for certain: never more than its guardian will say."""

from __future__ import annotations

import os
import subprocess
import sys

from gpucredits.agent.guard.guardian import start_of
from gpucredits.agent.job import SupervisedJob
from gpucredits.agent.run_time import RunTime
from gpucredits.client.leases import clock_ms
from gpucredits.client.standing import Standing


def running(pid: int, start: int) -> SupervisedJob:
    """A job that started five seconds ago, as far as is known."""
    life = RunTime()
    life.hear(f"started {clock_ms() - 5_000} {pid} {start}")
    return SupervisedJob(reservation_id="r", standing=Standing(ends_at_ms=0), run_time=life)


def test_a_job_that_is_seen_alive_has_used_all_of_its_time() -> None:
    """Control: the time counts until now."""
    assert running(os.getpid(), start_of(os.getpid())).certain_ms() >= 5_000


def test_a_job_whose_end_has_not_been_told_claims_no_more() -> None:
    """The guardian may have stamped an end that is on its way: what was certain stays so."""
    own = os.getpid()
    job = running(own, start_of(own))
    before = job.certain_ms()
    job.run_time.pid_start += 1  # as if another process had its pid by now
    assert job.certain_ms() == before
    job.run_time.hear(f"ended {clock_ms() + 1_000} 0")
    assert job.certain_ms() > before


def test_a_job_that_is_about_to_pause_claims_no_more() -> None:
    """From the order to pause until the guardian has said when it paused."""
    own = os.getpid()
    job = running(own, start_of(own))
    before = job.certain_ms()
    job.standing = Standing(ends_at_ms=0, is_paused=True)
    job._order_standing()
    job.run_time.runs_since_ms = (job.run_time.runs_since_ms or 0) - 1_000
    assert job.certain_ms() == before


def test_a_process_that_is_dead_and_not_buried_does_not_run() -> None:
    """A zombie is no sign of life."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as child:
        job = running(child.pid, start_of(child.pid))
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert job.certain_ms() == 0
