"""Queues of a lane: orgs take turns, an org has its part, and is in one batch at a time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from gpucredits.core.heartbeat import Beat
from gpucredits.service.write.batch import Job
from gpucredits.service.write.batch_queue import BatchQueue, BatchTerms
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.heartbeats import BeatCall, BeatJob

TERMS = BatchTerms(batch_max=100, turn_max=20, org_waiting_max=2_000)


def job(org_id: int, size: int = 1) -> BeatJob:
    """Heartbeats of one org, which nobody waits for."""
    loop = asyncio.new_event_loop()
    try:
        call = BeatCall([None] * size, loop.create_future(), size)
    finally:
        loop.close()
    return BeatJob(org_id, [Beat(1, 1, 1)] * size, [call] * size, list(range(size)))


def orgs_of(jobs: list[Job]) -> list[int]:
    """Whose they are."""
    return [each.org_id for each in jobs]


def test_orgs_take_turns() -> None:
    """Behind a flood of one org, another org's beats are in the very next batch."""
    waiting = BatchQueue(TERMS)
    for _ in range(100):
        waiting.put(job(1, 10))
    waiting.put(job(2))
    taken = orgs_of(waiting.take())
    assert taken[:4] == [1, 1, 2, 1]
    assert taken.count(1) == 10
    assert waiting.queues[1].waiting == 1_000 - 100


def test_one_org_never_fills_a_batch() -> None:
    """However much one org sends, a batch holds its part and no more; then it goes on."""
    waiting = BatchQueue(
        BatchTerms(batch_max=64, turn_max=1, org_batch_max=16, org_waiting_max=2_000)
    )
    for org_id, count in ((1, 40), (2, 2)):
        for _ in range(count):
            waiting.put(job(org_id))
    taken = []
    for _ in range(4):
        taken.append(orgs_of(waiting.take()))
        waiting.give_back(set(taken[-1]))
    assert [(each.count(1), each.count(2)) for each in taken] == [(16, 2), (16, 0), (8, 0), (0, 0)]
    assert taken[0][:4] == [1, 2, 1, 2]
    assert not waiting.queues
    assert not waiting.turns
    assert not waiting.ready


def test_of_an_org_under_way_nothing_is_taken() -> None:
    """What comes for it waits until its batch is done, and is not counted as ready."""
    waiting = BatchQueue(TERMS)
    waiting.put(job(1))
    assert orgs_of(waiting.take()) == [1]
    waiting.put(job(1, 3))
    waiting.put(job(2))
    assert waiting.ready == 1
    assert orgs_of(waiting.take()) == [2]
    assert waiting.take() == []
    waiting.give_back({1})
    assert waiting.ready == 3
    assert orgs_of(waiting.take()) == [1]


def test_the_bound_counts_what_waits_behind_a_batch() -> None:
    """An org that is under way has no more room than any other."""
    waiting = BatchQueue(BatchTerms(batch_max=10, turn_max=10, org_waiting_max=5))
    waiting.put(job(1, 5))
    waiting.take()
    waiting.put(job(1, 5))
    with pytest.raises(Busy):
        waiting.put(job(1))


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_taken_once_and_in_order(seed: int) -> None:
    """Whatever happens in what order: an org is in one batch, a job taken once, in its order."""
    dice = random.Random(seed)
    terms = BatchTerms(batch_max=12, turn_max=3, org_batch_max=5, org_waiting_max=1_000, many=6)
    waiting = BatchQueue(terms)
    sent: dict[int, list[Job]] = {org_id: [] for org_id in range(5)}
    taken: dict[int, list[Job]] = {org_id: [] for org_id in range(5)}
    batches: list[set[int]] = []
    for step in range(400):
        if dice.random() < 0.6 and step < 300:
            new = job(dice.randrange(5), dice.randint(1, 4))
            sent[new.org_id].append(new)
            waiting.put(new)
        elif dice.random() < 0.5:
            batch = waiting.take()
            busy = Counter(org_id for orgs in batches for org_id in orgs)
            assert not busy.keys() & set(orgs_of(batch))
            for each in batch:
                taken[each.org_id].append(each)
            batches.append(set(orgs_of(batch)))
        elif batches:
            waiting.give_back(batches.pop(dice.randrange(len(batches))))
        held = set().union(*batches) if batches else set()
        assert waiting.ready == sum(
            queue.waiting for org_id, queue in waiting.queues.items() if org_id not in held
        )
        assert waiting.waiting == sum(queue.waiting for queue in waiting.queues.values())
    while batches:
        waiting.give_back(batches.pop())
    while batch := waiting.take():
        for each in batch:
            taken[each.org_id].append(each)
        waiting.give_back(set(orgs_of(batch)))
    assert taken == sent
    assert not waiting.queues
    assert not waiting.waiting


def beating(waiting: BatchQueue, *orgs: int) -> BeatCall:
    """One caller's heartbeats, one for each org named."""
    loop = asyncio.new_event_loop()
    call = BeatCall([None] * len(orgs), loop.create_future(), len(orgs))
    loop.close()
    waiting.put_beats([(org_id, Beat(place, 1, 1)) for place, org_id in enumerate(orgs)], call, 0.0)
    return call


def test_heartbeats_of_an_org_wait_together_whoever_sent_them() -> None:
    """One job of each org, whose answers find their callers and places."""
    waiting = BatchQueue(TERMS)
    first, second = beating(waiting, 1, 2, 1), beating(waiting, 1)
    assert waiting.ready == 4
    jobs = waiting.take()
    assert [(each.org_id, each.size) for each in jobs] == [(1, 3), (2, 1)]
    jobs[0].fail(ValueError("of org 1"))
    assert [type(each) for each in first.results] == [ValueError, type(None), ValueError]
    assert second.pending == 0
    assert first.pending == 1


def test_heartbeats_join_nothing_that_is_full_or_under_way() -> None:
    """A job holds no more than a turn, and one that was taken does not grow."""
    waiting = BatchQueue(BatchTerms(batch_max=100, turn_max=3, org_waiting_max=2_000))
    beating(waiting, *[1] * 7)
    assert [each.size for each in waiting.queues[1].jobs] == [3, 3, 1]
    taken = waiting.take()
    beating(waiting, 1, 1)
    assert [each.size for each in taken] == [3, 3, 1]
    assert waiting.queues[1].waiting == 2
    assert waiting.ready == 0


def test_heartbeats_without_room_are_busy_in_their_places() -> None:
    """The bound is the org's, and those that still fit are taken."""
    waiting = BatchQueue(BatchTerms(batch_max=100, turn_max=3, org_waiting_max=4))
    call = beating(waiting, 1, 1, 1, 1, 1, 2, 1)
    assert [type(each) is Busy for each in call.results] == [False] * 4 + [True, False, True]
    assert waiting.ready == call.pending == 5


def test_a_batch_is_large_only_in_a_crowd() -> None:
    """What waits decides, that of orgs which are under way with it; the rest is left for others."""
    waiting = BatchQueue(
        BatchTerms(batch_max=8, calm_max=2, crowd=6, turn_max=1, org_waiting_max=2_000)
    )
    beating(waiting, *range(6))
    assert orgs_of(waiting.take()) == [0, 1]
    beating(waiting, 0, 0, 0)  # of an org that is under way
    assert (waiting.waiting, waiting.ready) == (7, 4)
    assert orgs_of(waiting.take()) == [2, 3, 4, 5]
    assert (waiting.waiting, waiting.ready) == (3, 0)


def test_orgs_with_many_waiting_have_batches_of_their_own() -> None:
    """Large and small in turns, whoever keeps on sending; each kind in its order."""
    waiting = BatchQueue(BatchTerms(batch_max=100, turn_max=10, org_waiting_max=2_000, many=3))
    beating(waiting, 1, 2, 2, 2, 3, 4, 4, 4, 4)
    assert [(each.org_id, each.size) for each in waiting.take()] == [(2, 3), (4, 4)]
    beating(waiting, 5, 5, 5)
    assert orgs_of(waiting.take()) == [1, 3]
    waiting.give_back({1, 2, 3, 4})
    beating(waiting, 6)
    assert orgs_of(waiting.take()) == [5]
    assert orgs_of(waiting.take()) == [6]
    assert not waiting.turns
    assert not waiting.ready


def test_a_small_org_is_not_kept_waiting_by_large_ones_without_end() -> None:
    """Of two batches one is for the small, though the large are never done."""
    waiting = BatchQueue(BatchTerms(batch_max=4, turn_max=4, org_waiting_max=2_000, many=3))
    beating(waiting, *[1] * 9, *[2] * 9, 3)
    first = orgs_of(waiting.take())
    assert first == [1]
    waiting.give_back(set(first))
    assert orgs_of(waiting.take()) == [3]


def test_orgs_of_both_kinds_keep_their_order_in_line() -> None:
    """Whoever is not taken is overtaken by nobody, also when it becomes one of the other kind."""
    waiting = BatchQueue(BatchTerms(batch_max=3, turn_max=3, org_waiting_max=2_000, many=3))
    beating(waiting, *[1] * 3, 2, *[3] * 3, 4)
    assert orgs_of(waiting.take()) == [1]
    assert list(waiting.turns) == [2, 3, 4]
    beating(waiting, 4, 4)
    assert orgs_of(waiting.take()) == [2]
    assert orgs_of(waiting.take()) == [3]


def test_both_kinds_go_together_unless_there_is_a_crowd() -> None:
    """A report of a large and a small org on a quiet server is one batch."""
    terms = BatchTerms(batch_max=100, crowd=50, turn_max=10, org_waiting_max=2_000, many=3)
    waiting = BatchQueue(terms)
    beating(waiting, 1, 1, 1, 1, 2)
    assert orgs_of(waiting.take()) == [1, 2]
    assert not waiting.is_cut


def test_a_full_batch_leaves_the_line_of_others_as_it_was() -> None:
    """Those it has taken from leave the line; those it has not reached keep their order."""
    waiting = BatchQueue(
        BatchTerms(batch_max=6, turn_max=2, org_batch_max=5, org_waiting_max=2_000)
    )
    for org_id in (1, 2, 3, 4, 5):
        for _ in range(4):
            waiting.put(job(org_id))
    line = waiting.turns
    assert orgs_of(waiting.take()) == [1, 1, 2, 2, 3, 3]
    assert list(waiting.turns) == [4, 5]
    assert waiting.turns is line
    assert orgs_of(waiting.take()) == [4, 4, 5, 5, 4, 4]
    assert not waiting.turns
