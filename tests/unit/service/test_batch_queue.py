"""The queue of one kind of writes: orgs take turns, and an org is in one batch at a time."""

from __future__ import annotations

import asyncio
import random

import pytest

from gpucredits.core.heartbeat import Beat
from gpucredits.service.write.batch import Job
from gpucredits.service.write.batch_queue import BatchLimits, BatchQueue
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.heartbeats import BEATS_DECIDED_AT_ONCE, BeatCall, BeatJob


def queue_of(
    *, batch_max: int = 100, org_batch_max: int = 20, org_waiting_max: int = 2_000
) -> BatchQueue:
    """A queue without workers, from which only the test takes."""
    limits = BatchLimits(
        at_once=1,
        batch_max=batch_max,
        org_batch_max=org_batch_max,
        org_waiting_max=org_waiting_max,
    )
    return BatchQueue(limits, [])


def job(org_id: int, size: int = 1) -> BeatJob:
    """Heartbeats of one org, which nobody waits for."""
    loop = asyncio.new_event_loop()
    try:
        call = BeatCall([None] * size, loop.create_future(), size)
    finally:
        loop.close()
    return BeatJob(org_id, [Beat(1, 1, 1)] * size, [call] * size, list(range(size)))


def beating(queue: BatchQueue, *orgs: int) -> BeatCall:
    """One caller's heartbeats, one for each org named."""
    loop = asyncio.new_event_loop()
    call = BeatCall([None] * len(orgs), loop.create_future(), len(orgs))
    loop.close()
    queue.put_beats([(org_id, Beat(place, 1, 1)) for place, org_id in enumerate(orgs)], call, 0.0)
    return call


def orgs_of(jobs: list[Job]) -> list[int]:
    """Whose jobs they are."""
    return [each.org_id for each in jobs]


def test_orgs_take_turns() -> None:
    """Behind a flood of one org, another org's heartbeats are in the very next batch."""
    queue = queue_of()
    for _ in range(100):
        queue.put(job(1, 10))
    queue.put(job(2))
    assert orgs_of(queue.take()) == [1, 1, 2]
    assert queue.queues[1].waiting == 1_000 - 20


def test_one_org_fills_a_batch_only_when_it_waits_alone() -> None:
    """However much one org sends, a batch with another org holds its share and no more."""
    queue = queue_of(batch_max=64, org_batch_max=16)
    for org_id, count in ((1, 40), (2, 2)):
        for _ in range(count):
            queue.put(job(org_id))
    taken = []
    for _ in range(4):
        batch = queue.take()
        taken.append(orgs_of(batch))
        queue.give_back(batch)
    assert [(each.count(1), each.count(2)) for each in taken] == [(16, 2), (24, 0), (0, 0), (0, 0)]
    assert not queue.queues
    assert not queue.turns


def test_nothing_is_taken_of_an_org_under_way() -> None:
    """Jobs that arrive for an org in a batch wait until that batch has ended."""
    queue = queue_of()
    queue.put(job(1))
    first = queue.take()
    assert orgs_of(first) == [1]
    queue.put(job(1, 3))
    queue.put(job(2))
    assert orgs_of(queue.take()) == [2]
    assert queue.take() == []
    queue.give_back(first)
    assert orgs_of(queue.take()) == [1]


def test_the_bound_counts_what_waits_behind_a_batch() -> None:
    """An org that is under way has no more room than any other."""
    queue = queue_of(org_waiting_max=5)
    queue.put(job(1, 5))
    queue.take()
    queue.put(job(1, 5))
    with pytest.raises(Busy):
        queue.put(job(1))


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_taken_once_and_in_order(seed: int) -> None:
    """Whatever happens in what order: an org is in one batch, a job taken once, in its order."""
    dice = random.Random(seed)
    queue = queue_of(batch_max=12, org_batch_max=5)
    sent: dict[int, list[Job]] = {org_id: [] for org_id in range(5)}
    taken: dict[int, list[Job]] = {org_id: [] for org_id in range(5)}
    batches: list[list[Job]] = []
    for step in range(400):
        if dice.random() < 0.6 and step < 300:
            new = job(dice.randrange(5), dice.randint(1, 4))
            sent[new.org_id].append(new)
            queue.put(new)
        elif dice.random() < 0.5:
            batch = queue.take()
            busy = {each.org_id for other in batches for each in other}
            assert not busy & set(orgs_of(batch))
            for each in batch:
                taken[each.org_id].append(each)
            batches.append(batch)
        elif batches:
            queue.give_back(batches.pop(dice.randrange(len(batches))))
        for org_id, waiting in queue.queues.items():
            assert waiting.waiting == sum(each.size for each in waiting.jobs)
            assert (org_id in queue.turns) == bool(waiting.jobs and not waiting.is_under_way)
    while batches:
        queue.give_back(batches.pop())
    while batch := queue.take():
        for each in batch:
            taken[each.org_id].append(each)
        queue.give_back(batch)
    assert taken == sent
    assert not queue.queues


def test_heartbeats_of_an_org_wait_together_whoever_sent_them() -> None:
    """One job of each org, whose answers find their callers and places."""
    queue = queue_of()
    first, second = beating(queue, 1, 2, 1), beating(queue, 1)
    jobs = queue.take()
    assert [(each.org_id, each.size) for each in jobs] == [(1, 3), (2, 1)]
    jobs[0].fail(ValueError("of org 1"))
    assert [type(each) for each in first.results] == [ValueError, type(None), ValueError]
    assert second.pending == 0
    assert first.pending == 1


def test_heartbeats_join_no_job_that_is_full_or_under_way() -> None:
    """A job holds no more than is decided at once, and one that was taken does not grow."""
    queue = queue_of(batch_max=1_000, org_batch_max=1_000)
    beating(queue, *[1] * (2 * BEATS_DECIDED_AT_ONCE + 1))
    sizes = [BEATS_DECIDED_AT_ONCE, BEATS_DECIDED_AT_ONCE, 1]
    taken = queue.take()
    beating(queue, 1, 1)
    assert [each.size for each in taken] == sizes
    assert queue.queues[1].waiting == 2
    assert not queue.turns


def test_heartbeats_without_room_are_busy_in_their_places() -> None:
    """The bound is the org's, and heartbeats that still fit are taken."""
    queue = queue_of(org_waiting_max=4)
    call = beating(queue, 1, 1, 1, 1, 1, 2, 1)
    assert [type(each) is Busy for each in call.results] == [False] * 4 + [True, False, True]
    assert call.pending == 5


def test_a_full_batch_leaves_the_other_orgs_in_order() -> None:
    """Orgs that a batch has taken from leave the line; the others keep their order."""
    queue = queue_of(batch_max=6, org_batch_max=5)
    for org_id in (1, 2, 3, 4):
        for _ in range(4):
            queue.put(job(org_id))
    assert orgs_of(queue.take()) == [1, 1, 1, 1, 2, 2]
    assert list(queue.turns) == [3, 4]
    assert orgs_of(queue.take()) == [3, 3, 3, 3, 4, 4]
    assert not queue.turns


def test_what_finds_no_room_is_counted() -> None:
    """Commands and heartbeats for which an org's queue has no room are told to health."""
    queue = queue_of(org_waiting_max=2)
    queue.put(job(1, 2))
    assert queue.turned_away_total == 0
    beating(queue, 1, 2, 1)
    with pytest.raises(Busy):
        queue.put(job(1))
    with pytest.raises(Busy):
        queue.ensure_room({2: 1, 1: 4})
    assert queue.turned_away_total == 2 + 1 + 4
