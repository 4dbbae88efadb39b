"""The rule of trust: what a job has to do at each instant, by the last answer."""

from __future__ import annotations

import pytest

from gpucredits.agent.run_time import RunTime
from gpucredits.client.standing import (
    BEAT_MS_MIN,
    Act,
    Standing,
    heard,
    margin_ms,
    seq_after,
)
from gpucredits.wire.ledger.heartbeat import BeatAnswer
from gpucredits.wire.ledger.reservation import SEQ_MAX, DecisionName

SENT = 1_000_000
BEFORE = Standing(ends_at_ms=SENT + 500, beat_at_ms=SENT)


def answer(
    decision: DecisionName | None,
    left_ms: int = 10_000,
    signal_ms: int | None = None,
    clears_ms: int | None = None,
) -> BeatAnswer:
    """What a server may say."""
    deadline = left_ms if decision in ("drain", "throttle") else None
    said = BeatAnswer("rsv_1_1", decision, "1", "1", left_ms, "active")
    said.deadline_in_ms, said.signal_in_ms, said.clears_in_ms = deadline, signal_ms, clears_ms
    return said


@pytest.mark.parametrize(
    ("said", "at_ms", "act"),
    [
        (answer("continue"), 0, Act.RUN),
        (answer("continue"), 9_899, Act.RUN),
        (answer("continue"), 9_900, Act.END),  # a hundredth before the lease ends
        (answer("stop"), 0, Act.END),
        (answer("drain", signal_ms=4_000), 3_999, Act.RUN),
        (answer("drain", signal_ms=4_000), 4_000, Act.SIGNAL),
        (answer("drain", signal_ms=4_000), 9_900, Act.END),
        (answer("drain", signal_ms=0), 0, Act.SIGNAL),
        (answer("throttle"), 0, Act.PAUSE),
        (answer("throttle"), 9_900, Act.END),
        (answer("continue", left_ms=0), 0, Act.END),
        (answer(None), 499, Act.RUN),  # no decision: the old trust holds, and no longer
        (answer(None), 500, Act.END),
    ],
)
def test_what_a_job_has_to_do(said: BeatAnswer, at_ms: int, act: Act) -> None:
    """Trust counts from the instant of sending, not of hearing."""
    assert heard(BEFORE, said, SENT).act(SENT + at_ms) is act


def test_the_reason_of_a_drain_outlives_the_lease() -> None:
    """A lease that expires after its drain ended for want of credits, not by itself."""
    drain, lapse = answer("drain", signal_ms=0), answer("stop")
    drain.reason, lapse.reason = "insufficient_credits", "expired"
    told = heard(BEFORE, drain, SENT)
    assert heard(told, lapse, SENT).reason == "insufficient_credits"
    assert heard(BEFORE, lapse, SENT).reason == "expired"
    lapse.reason = "suspended"
    assert heard(told, lapse, SENT).reason == "suspended"


def test_a_job_reports_at_once_beyond_the_seqs_of_somebody_else() -> None:
    """Each time it leaves them further behind; where no seq is left, it ends and settles."""
    taken = answer("continue")
    assert seq_after(7, taken) == 7
    taken.flagged, taken.last_seq = "seq_taken", 1_000
    standing = heard(BEFORE, taken, SENT)
    assert (standing.beat_at_ms, standing.act(SENT)) == (SENT + BEAT_MS_MIN, Act.RUN)
    seq, races = 1, 0
    while heard(BEFORE, taken, SENT).act(SENT) is Act.RUN:
        seq, races = seq_after(seq, taken), races + 1
        assert taken.last_seq < seq < SEQ_MAX - 1_000
        taken.last_seq = seq + 1
    assert races < 2_100
    assert seq_after(seq, taken) < SEQ_MAX - 1_000
    assert heard(BEFORE, taken, SENT).reason == "seq_taken"


def test_trust_ends_before_the_lease_whatever_its_length() -> None:
    """The margin is never the whole time, and never nothing where there is time."""
    for granted in (1, 2, 50, 100, 1_000, 120_000, 86_400_000):
        assert 0 <= margin_ms(granted) <= max(granted // 2, 0)
        assert margin_ms(granted) > 0 or granted < 2


def test_a_throttled_job_asks_again_when_it_could_go_on() -> None:
    """The next report is due then, or a third of the lease later, whichever is first."""
    assert heard(BEFORE, answer("throttle", clears_ms=900), SENT).beat_at_ms == SENT + 900
    assert heard(BEFORE, answer("throttle", clears_ms=9_000), SENT).beat_at_ms == SENT + 3_333


def test_paused_time_is_not_used() -> None:
    """A job is billed for the time that it ran."""
    job = RunTime()
    for line in ("started 100 7 1", "paused 150", "resumed 1000", "ended 1025 0"):
        job.hear(line)
    assert (job.used_ms(5_000), job.is_over, job.exit_status) == (75, True, 0)
