"""When a batch begins: at once while few are at work, and otherwise when one of these ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.service.write import batch_worker
from gpucredits.service.write.batch import Job, Result, commit
from gpucredits.service.write.ledger import DEFAULTS, Undecided, WriteOptions
from gpucredits.store.book.cache.book_cache import BookCache
from gpucredits.store.database import batch_session
from gpucredits.store.database.connection import Connection
from support.scene import Scene, play
from support.waiting import HANGS_S

TWO = WriteOptions(heartbeats=replace(DEFAULTS.heartbeats, at_once=2, workers=4))
ORGS = [f"org{number}" for number in range(5)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that wait for a lock for as long as a test may take."""
    monkeypatch.setattr(batch_session, "SESSION", batch_session.SESSION.replace("'1s'", "'600s'"))


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
