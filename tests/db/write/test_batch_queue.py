"""When a batch begins: at once while few are at work, and otherwise when one of these ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from gpucredits.core.command import Settle
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.service.write import batch_worker
from gpucredits.service.write.batch import Job, Result, commit
from gpucredits.service.write.ledger import DEFAULTS, Request, Undecided, WriteOptions
from gpucredits.store.book import save
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.database.connection import Connection
from support.scenes.scene import Scene, play
from support.waiting import HANGS_S

TWO = WriteOptions(heartbeats=replace(DEFAULTS.heartbeats, at_once=2, workers=4))
ORGS = [f"org{number}" for number in range(5)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that wait for a lock for as long as a test may take."""
    monkeypatch.setattr(save, "SESSION", save.SESSION.replace("'1s'", "'600s'"))


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The orgs of every batch that is tried from now on."""
    batches: list[list[int]] = []

    async def seen(connection: Connection, jobs: Sequence[Job], cache: BookCache) -> list[Result]:
        batches.append([job.org_id for job in jobs])
        return await commit(connection, jobs, cache)

    monkeypatch.setattr(batch_worker, "commit", seen)
    return batches


async def numbers(stage: Scene) -> list[int]:
    """Open the orgs; their numbers."""
    await stage.fund(*ORGS)
    found = [await stage.ledger.org_id(org) for org in ORGS]
    return [number for number in found if number is not None]


@asynccontextmanager
async def locked(stage: Scene, *orgs: int) -> AsyncIterator[None]:
    """Rows of some orgs, locked by another session."""
    async with stage.pool.acquire() as holder, holder.transaction():
        await holder.execute("SELECT FROM orgs WHERE org_id = ANY ($1) FOR UPDATE", list(orgs))
        yield


def report(stage: Scene, org_id: int) -> asyncio.Task[list[Outcome | Undecided]]:
    """A report of one heartbeat of a lease that does not exist."""
    return asyncio.create_task(stage.ledger.beat([(org_id, Beat(999, 1, 1))]))


async def few_rounds() -> None:
    """Let the event loop run what is ready, so that a batch begins if it may."""
    for _ in range(5):
        await asyncio.sleep(0)


def are_refused(answers: Sequence[list[Outcome | Undecided]]) -> bool:
    """Whether every heartbeat was decided."""
    return all(isinstance(each, Refused) for answer in answers for each in answer)


def test_a_report_right_behind_another_begins_at_once(database: str) -> None:
    """No clock decides: after a few rounds of the event loop the report waits no more."""

    async def act(stage: Scene) -> None:
        first, *_ = await numbers(stage)
        queue = stage.ledger.heartbeats
        for _ in range(3):
            task = report(stage, first)
            await few_rounds()
            assert not queue.turns
            assert are_refused([await task])

    play(database, act)


@pytest.mark.usefixtures("patient")
def test_jobs_that_arrive_while_batches_are_at_work_form_the_next_one(
    database: str, tried: list[list[int]]
) -> None:
    """Two batches hang in the database; reports that come one by one wait and go together."""

    async def act(stage: Scene) -> None:
        first, second, *others = await numbers(stage)
        queue = stage.ledger.heartbeats
        async with locked(stage, first, second):
            tasks = []
            for org_id in (first, second, *others, others[0]):
                tasks.append(report(stage, org_id))
                await few_rounds()
            under_way = {org_id for org_id, each in queue.queues.items() if each.is_under_way}
            assert under_way == {first, second}
            assert list(queue.turns) == others
        assert are_refused(await asyncio.gather(*tasks))
        assert others in tried

    play(database, act, options=TWO)


@pytest.mark.usefixtures("patient")
def test_a_second_batch_begins_beside_the_first(database: str) -> None:
    """While one org's batch hangs, another org's report is answered; the first org keeps order."""

    async def act(stage: Scene) -> None:
        stuck, quiet, *_ = await numbers(stage)
        async with locked(stage, stuck):
            hanging = [report(stage, stuck)]
            await few_rounds()
            hanging.append(report(stage, stuck))
            async with asyncio.timeout(HANGS_S):
                assert are_refused([await report(stage, quiet) for _ in range(3)])
            assert not any(task.done() for task in hanging)
        assert are_refused(await asyncio.gather(*hanging))

    play(database, act, options=TWO)


def test_batches_that_have_met_a_lock_do_not_count(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches wait until another session releases their orgs, and others go on meanwhile."""
    monkeypatch.setattr(batch_worker, "HELD_MAX_S", HANGS_S)

    async def act(stage: Scene) -> None:
        first, second, *others = await numbers(stage)
        async with locked(stage, first, second):
            hanging = []
            for org_id in (first, second):
                hanging.append(report(stage, org_id))
                await few_rounds()
            async with asyncio.timeout(HANGS_S / 2):
                assert are_refused([await report(stage, org_id) for org_id in others])
            assert not any(task.done() for task in hanging)
        assert are_refused(await asyncio.gather(*hanging))

    play(database, act, options=TWO)


@pytest.mark.parametrize(
    ("long_s", "count", "waits"),
    [(0.0, 2, 0), (HANGS_S, 9, 0), (HANGS_S, 8, 1), (HANGS_S, 2, 1), (HANGS_S, 1, 0)],
)
def test_a_batch_that_takes_long_is_one_orgs_or_no_larger_holds_nobody_up(
    database: str, monkeypatch: pytest.MonkeyPatch, long_s: float, count: int, waits: int
) -> None:
    """Another org's command goes beside it; the control: beside a short one of several it waits."""
    begun: list[int] = []
    go_on = asyncio.Event()
    is_begun = [asyncio.Event(), asyncio.Event()]

    async def slow(connection: Connection, jobs: Sequence[Job], cache: BookCache) -> list[Result]:
        is_begun[len(begun)].set()
        begun.append(jobs[0].org_id)
        if len(begun) == 1:
            await go_on.wait()
        return await commit(connection, jobs, cache)

    async def act(stage: Scene) -> None:
        first, second, *_ = await numbers(stage)
        monkeypatch.setattr(batch_worker, "commit", slow)
        tasks = [settle(stage, first) for _ in range(count)]
        await is_begun[0].wait()
        tasks.append(settle(stage, second))
        if waits:
            await few_rounds()
            assert begun == [first]
        else:
            await is_begun[1].wait()
            assert begun == [first, second]
        go_on.set()
        assert all(isinstance(each, Refused) for each in await asyncio.gather(*tasks))

    limits = replace(DEFAULTS.commands, at_once=1, long_s=long_s)
    play(database, act, options=WriteOptions(commands=limits))


def settle(stage: Scene, org_id: int) -> asyncio.Task[Outcome]:
    """A command about a lease that does not exist."""
    return asyncio.create_task(stage.ledger.submit(org_id, Request(Settle(reservation_id=999))))
