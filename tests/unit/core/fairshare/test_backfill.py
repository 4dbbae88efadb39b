"""Backfill and start estimates decided by hand: one pool, one sentence, one answer."""

from __future__ import annotations

import pytest

from gpucredits.core.fairshare.decisions import WaitReason
from gpucredits.core.fairshare.snapshot import Policy
from support.books.fairshare_case import HOUR, MINUTE, NOW, Case, ask, job

CASES = {
    "backfill fits under the shadow of the head": Case(
        4,
        running=(job("r", "a", 3, expected_end=NOW + HOUR),),
        waiting=(ask("head", "a", 4, priority=1), ask("short", "a", 1, duration_ms=3_600_000)),
        starts="short",
        waits="head:capacity",
    ),
    "backfill that would delay the head is refused": Case(
        4,
        running=(job("r", "a", 3, expected_end=NOW + HOUR),),
        waiting=(ask("head", "a", 4, priority=1), ask("long", "a", 1, duration_ms=3_600_001)),
        waits="head:capacity long:would_delay_head",
    ),
    "backfill beside the head may run on": Case(
        4,
        running=(job("r", "a", 3, expected_end=NOW + HOUR),),
        waiting=(ask("head", "a", 3, priority=1), ask("long", "a", 1)),
        starts="long",
        waits="head:capacity",
    ),
    "backfill that is off lets nobody overtake": Case(
        4,
        running=(job("r", "a", 3, expected_end=NOW + HOUR),),
        waiting=(ask("head", "a", 4, priority=1), ask("short", "a", 1, duration_ms=1)),
        policy=Policy(backfill=False),
        waits="head:capacity short:backfill_off",
    ),
    "backfill looks only so far back": Case(
        4,
        running=(job("r", "a", 2, expected_end=NOW + HOUR),),
        waiting=(
            ask("head", "a", 4, priority=1),
            *(ask(f"s{n}", "a", 1, duration_ms=1) for n in range(2)),
        ),
        policy=Policy(backfill_depth=1),
        starts="s0",
        waits="head:capacity s1:backfill_depth",
    ),
    "a head that nobody can tell when it starts is overtaken": Case(
        4,
        running=(job("r", "a", 3),),
        waiting=(ask("head", "a", 4, priority=1), ask("long", "a", 1)),
        starts="long",
        waits="head:capacity",
    ),
    "but not for ever": Case(
        4,
        running=(job("r", "a", 3),),
        waiting=(
            ask("head", "a", 4, priority=1, submitted_at=NOW - HOUR),
            ask("long", "a", 1),
        ),
        waits="head:capacity long:held_for_head",
    ),
    "who overtook and is overdue makes room for the head": Case(
        8,
        running=(job("liar", "b", 2, started_at=NOW - MINUTE, promised_end=NOW),),
        waiting=(ask("head", "a", 8),),
        stops="liar",
        waits="head:making_room",
    ),
    "who overtook and is not overdue is left alone": Case(
        8,
        running=(job("honest", "b", 2, started_at=NOW - MINUTE, promised_end=NOW + 1),),
        waiting=(ask("head", "a", 8),),
        waits="head:capacity",
    ),
    "who is overdue runs on while it is in nobody's way": Case(
        8,
        running=(job("long", "c", 3), job("liar", "b", 2, promised_end=NOW - HOUR)),
        waiting=(ask("head", "a", 8),),
        waits="head:capacity",
    ),
    "no more that is overdue is stopped than needed": Case(
        8,
        running=(
            job("one", "b", 1, promised_end=NOW - HOUR),
            job("two", "b", 2, promised_end=NOW - HOUR, started_at=NOW - 2 * HOUR),
        ),
        waiting=(ask("head", "a", 7),),
        stops="two",
        waits="head:making_room",
    ),
    "what may not be preempted is not, overdue or not": Case(
        8,
        running=(job("staff", "b", 2, promised_end=NOW - HOUR, preemptible=False),),
        waiting=(ask("head", "a", 8),),
        waits="head:capacity",
    ),
    "a gang that is overdue in part is left alone": Case(
        8,
        running=(
            job("g1", "b", 1, promised_end=NOW - HOUR, gang="g"),
            job("g2", "b", 1, promised_end=NOW + HOUR, gang="g"),
        ),
        waiting=(ask("head", "a", 7),),
        waits="head:capacity",
    ),
    "a gang that is overdue stops whole": Case(
        8,
        running=(
            job("g1", "b", 1, promised_end=NOW - HOUR, gang="g"),
            job("g2", "b", 1, promised_end=NOW - 1, gang="g"),
        ),
        waiting=(ask("head", "a", 7),),
        stops="g1 g2",
        waits="head:making_room",
    ),
    "preemption that is off keeps what is overdue": Case(
        8,
        running=(job("liar", "b", 2, promised_end=NOW - HOUR),),
        waiting=(ask("head", "a", 8),),
        policy=Policy(preemption=False),
        waits="head:capacity",
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_decision(claim: str) -> None:
    """The sentence is true of the pool beside it."""
    CASES[claim].check()


def test_start_estimates_follow_expected_ends() -> None:
    """Everyone in turn starts when enough has ended, the work before them included."""
    running = (
        job("r1", "a", 2, expected_end=NOW + HOUR),
        job("r2", "a", 2, expected_end=NOW + 2 * HOUR),
    )
    waiting = (
        ask("first", "a", 2, priority=3, duration_ms=3_600_000 * 5),
        ask("second", "a", 1, priority=2, duration_ms=3_600_000),
        ask("third", "a", 2, priority=1),
        ask("fourth", "a", 2),
    )
    rows = Case(4, running, waiting).decide().waiting
    starts = [(row.request_id, row.position, row.starts_at) for row in rows]
    assert starts == [
        ("first", 1, NOW + HOUR),
        ("second", 2, NOW + 2 * HOUR),
        ("third", 3, NOW + 3 * HOUR),
        ("fourth", 4, NOW + 6 * HOUR),
    ]


def test_a_job_that_has_overrun_its_end_is_not_counted_on() -> None:
    """An end that has passed is no end to wait for."""
    running = (job("r", "a", 4, expected_end=NOW - 1),)
    (row,) = Case(4, running, (ask("w", "a", 4),)).decide().waiting
    assert row.starts_at is None


def test_a_queue_that_is_not_ranked_whole_still_answers_everyone() -> None:
    """Beyond the depth that is looked at, a request is only told that the pool is full."""
    waiting = tuple(ask(f"w{n}", "a", 1) for n in range(4))
    policy = Policy(rank_all=False, backfill_depth=1)
    rows = Case(1, (), waiting, policy=policy).decide().waiting
    assert [row.reason for row in rows] == [
        WaitReason.CAPACITY,
        WaitReason.CAPACITY,
        WaitReason.NOT_RANKED,
    ]
