"""Preemption decided by hand: one pool, one sentence, one answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucredits.core.fairshare.snapshot import Policy, Scope, Tenant
from support.books.fairshare_case import HOUR, MINUTE, NOW, Case, ask, job, names

TWO_HOGS = (
    job("old", "hog", 2, started_at=NOW - 3 * HOUR),
    job("young", "hog", 2, started_at=NOW - 2 * HOUR),
)
CASES = {
    "what was borrowed is reclaimed from the youngest job": Case(
        4,
        running=TWO_HOGS,
        waiting=(ask("mine", "meek", 2),),
        stops="young",
        waits="mine:making_room",
    ),
    "the least important is stopped before the youngest": Case(
        4,
        running=(TWO_HOGS[0], TWO_HOGS[1]._replace(priority=1)),
        waiting=(ask("mine", "meek", 2),),
        stops="old",
        waits="mine:making_room",
    ),
    "a pool that was made smaller stops nobody by itself": Case(3, running=TWO_HOGS),
    "and starts nobody of those who hold too much": Case(
        3,
        running=TWO_HOGS,
        waiting=(ask("more", "hog", 1),),
        waits="more:capacity",
    ),
    "but makes room for who is within its share": Case(
        3,
        running=TWO_HOGS,
        waiting=(ask("mine", "meek", 1),),
        stops="young",
        waits="mine:making_room",
    ),
    "no more is stopped than needed": Case(
        8,
        running=(
            job("big", "hog", 5, started_at=NOW - 3 * HOUR),
            job("mid", "hog", 2, started_at=NOW - 2 * HOUR, priority=1),
            job("small", "hog", 1),
        ),
        waiting=(ask("mine", "meek", 4),),
        stops="big",
        waits="mine:making_room",
    ),
    "a tenant at or below its share loses nothing": Case(
        4,
        running=(job("a", "even", 2), job("b", "other", 2)),
        waiting=(ask("mine", "meek", 1),),
        stops="a",
        waits="mine:making_room",
        tenants=(Tenant("other", 3), Tenant("even", 1), Tenant("meek", 1)),
    ),
    "nobody above or at its share can preempt": Case(
        4,
        running=(job("a", "a", 2), job("b", "b", 2)),
        waiting=(ask("more", "a", 1),),
        waits="more:capacity",
    ),
    "a job that may not be preempted is not": Case(
        4,
        running=tuple(row._replace(preemptible=False) for row in TWO_HOGS),
        waiting=(ask("mine", "meek", 2),),
        waits="mine:capacity",
    ),
    "a job that has only just started is left alone": Case(
        4,
        running=(TWO_HOGS[0], TWO_HOGS[1]._replace(started_at=NOW - MINUTE)),
        waiting=(ask("mine", "meek", 2),),
        stops="old",
        waits="mine:making_room",
    ),
    "preemption that is off stops nothing": Case(
        4,
        running=TWO_HOGS,
        waiting=(ask("mine", "meek", 2),),
        policy=Policy(preemption=False),
        waits="mine:capacity",
    ),
    "what is already stopping is not stopped again": Case(
        4,
        running=(TWO_HOGS[0], TWO_HOGS[1]._replace(stopping_at=NOW + MINUTE)),
        waiting=(ask("mine", "meek", 2),),
        waits="mine:making_room",
    ),
    "a running gang is stopped whole or not at all": Case(
        4,
        running=(
            job("g1", "hog", 1, gang="g"),
            job("g2", "hog", 1, gang="g"),
            job("solo", "hog", 2, started_at=NOW - 3 * HOUR),
        ),
        waiting=(ask("mine", "meek", 2),),
        stops="g1 g2",
        waits="mine:making_room",
    ),
    "projects of one org reclaim from each other": Case(
        4,
        running=(job("hog", "a/p/x", 4),),
        waiting=(ask("mine", "a/q/x", 2),),
        stops="hog",
        waits="mine:making_room",
    ),
    "priority that the policy lets count protects important work": Case(
        4,
        running=(TWO_HOGS[0]._replace(priority=9), TWO_HOGS[1]._replace(priority=9)),
        waiting=(ask("mine", "meek", 2),),
        policy=Policy(priority_scope=Scope.POOL),
        waits="mine:capacity",
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_decision(claim: str) -> None:
    """The sentence is true of the pool beside it."""
    CASES[claim].check()


def test_a_preemption_says_by_when_for_whom_and_why() -> None:
    """Victims get their grace, and the numbers that made their tenant lose."""
    case = CASES["what was borrowed is reclaimed from the youngest job"]
    (row,) = case.decide().preemptions
    assert row.stop_at == NOW + 30 * 1_000_000
    assert (row.for_request, row.above, row.held, row.fair) == ("mine", "hog", (1, 1), (1, 2))


def test_a_promise_says_when_it_starts() -> None:
    """Room that is being made is there when the grace is over, or when the stopping have ended."""
    case = CASES["what was borrowed is reclaimed from the youngest job"]
    (row,) = case.decide().waiting
    assert row.starts_at == NOW + 30 * 1_000_000
    case = CASES["what is already stopping is not stopped again"]
    (row,) = case.decide().waiting
    assert row.starts_at == NOW + MINUTE


def test_preemptions_of_a_cycle_are_bounded() -> None:
    """A unit that would need more victims than the cycle may take waits."""
    running = tuple(job(f"r{n}", "hog", 1) for n in range(4))
    case = Case(4, running, (ask("mine", "meek", 2),))
    assert len(case.decide().preemptions) == 2
    bounded = replace(case, policy=Policy(preemptions_max=1))
    assert names(bounded.decide()) == ("", "", "mine:capacity")
