"""An org that somebody else has locked: it waits for a while by itself, and nobody with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import pytest

from gpucredits.core.command import CreateAccount, Issue, Reserve
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.service.write import batch_worker
from gpucredits.service.write.batch import Job, Result, commit
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.ledger import Undecided
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.book.save import held_by_others
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import Unavailable
from support.scenes.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

ORGS = [f"org{number}" for number in range(51)]
STUCK = ORGS[20]
OTHERS = [org for org in ORGS if org != STUCK]

LOCKS = {
    "org": "SELECT FROM orgs WHERE path = ANY ($1) FOR UPDATE",
    "account": "SELECT FROM accounts WHERE path = ANY ($1) FOR UPDATE",
}


class Leases:
    """One lease of each org, and what its node and its owner ask for."""

    def __init__(self, stage: Scene) -> None:
        self.stage = stage
        self.ids: dict[str, tuple[int, int]] = {}

    async def open(self) -> None:
        """Credits and a lease for each org."""

        async def one(org: str) -> None:
            for command in (CreateAccount(path=org), Issue(account=org, amount=1_000 * CREDIT)):
                await self.stage.do(command, org=org)
            lease = await self.reserve(org, "first")
            org_id = await self.stage.ledger.org_id(org)
            assert org_id is not None
            self.ids[org] = (org_id, lease.reservation.reservation_id)

        await asyncio.gather(*(one(org) for org in ORGS))
        await self.stage.advance(5)

    async def reserve(self, org: str, job_id: str) -> Reserved:
        """A lease of a minute; the same job is the same request."""
        wanted = Reserve(
            account=org, job_id=job_id, gpu_type="h100", milli_gpus=1_000, window_ms=60_000
        )
        outcome = await self.stage.do(wanted, org=org, key=f"{org} {job_id}")
        assert isinstance(outcome, Reserved), outcome
        return outcome

    async def beat(self, org: str, seq: int) -> Outcome | Undecided:
        """Five seconds are used of the first lease."""
        org_id, lease_id = self.ids[org]
        [outcome] = await self.stage.ledger.beat([(org_id, Beat(lease_id, seq, 5_000))])
        return outcome

    def ask(self, orgs: Sequence[str], number: int) -> list[asyncio.Task[Outcome | Undecided]]:
        """A heartbeat and another lease for each of some orgs, all at once."""

        async def another(org: str) -> Outcome | Undecided:
            try:
                return await self.reserve(org, f"job {number}")
            except (Busy, Unavailable) as error:
                return error

        works = [work for org in orgs for work in (self.beat(org, number), another(org))]
        return [asyncio.create_task(work) for work in works]


@asynccontextmanager
async def locked(stage: Scene, which: str, *orgs: str) -> AsyncIterator[None]:
    """Rows of some orgs, locked by somebody who takes his time."""
    async with stage.pool.acquire() as holder, holder.transaction():
        await holder.execute(LOCKS[which], list(orgs))
        yield


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The orgs of every batch that is tried from now on."""
    batches: list[set[int]] = []

    async def seen(connection: Connection, jobs: Sequence[Job], cache: BookCache) -> list[Result]:
        batches.append({job.org_id for job in jobs})
        return await commit(connection, jobs, cache)

    monkeypatch.setattr(batch_worker, "commit", seen)
    return batches


@pytest.mark.parametrize("which", LOCKS)
def test_neighbours_of_a_locked_org_are_answered(database: str, which: str) -> None:
    """Fifty orgs do not wait for one; it is told to try again, and then done, once."""

    async def act(stage: Scene) -> None:
        leases = Leases(stage)
        await leases.open()
        async with locked(stage, which, STUCK):
            asked, stuck = leases.ask(OTHERS, 1), leases.ask([STUCK], 1)
            done, waiting = await asyncio.wait(asked, timeout=HANGS_S)
            assert not waiting
            assert {type(each.result()) for each in done} == {BeatResult, Reserved}
            done, waiting = await asyncio.wait(stuck, timeout=HANGS_S)
            assert not waiting
            assert {type(each.result()) for each in done} == {Unavailable}
        again = await asyncio.gather(*leases.ask([STUCK], 1))
        assert [type(each) for each in again] == [BeatResult, Reserved]
        assert (await stage.balance(STUCK)).spent == 5 * CREDIT

    play(database, act)


def test_no_org_is_given_up_for_what_the_other_queue_holds(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that waits for a locked account holds its orgs: no reason to give those up."""

    async def look_slowly(connection: Connection, orgs: Iterable[int]) -> set[int]:
        await asyncio.sleep(0.3)  # the other queue's batch has the time to lock
        return await held_by_others(connection, orgs)

    async def act(stage: Scene) -> None:
        leases = Leases(stage)
        await leases.open()
        monkeypatch.setattr(
            batch_worker, "HELD_MAX_S", 0.0
        )  # every batch that was locked out is late
        monkeypatch.setattr(batch_worker, "held_by_others", look_slowly)
        async with locked(stage, "account", STUCK):
            asked, stuck = leases.ask(OTHERS, 1), leases.ask([STUCK], 1)
            outcomes = await asyncio.gather(*asked)
            assert [type(each) for each in outcomes] == [BeatResult, Reserved] * len(OTHERS)
            assert {type(each) for each in await asyncio.gather(*stuck)} == {Unavailable}

    play(database, act)


def test_an_org_that_was_locked_is_waited_for_by_nobody_else(
    database: str, tried: list[set[int]]
) -> None:
    """Once that is known it is in no batch, and comes after the others."""

    async def act(stage: Scene) -> None:
        leases = Leases(stage)
        await leases.open()
        async with locked(stage, "org", STUCK):
            assert isinstance(await leases.beat(STUCK, 1), Unavailable)
            tried.clear()
            stuck = asyncio.gather(*leases.ask([STUCK], 2))
            outcomes = await asyncio.gather(*leases.ask(OTHERS, 2))
            assert [type(each) for each in outcomes] == [BeatResult, Reserved] * len(OTHERS)
            assert not stuck.done()
            assert [type(each) for each in await stuck] == [Unavailable] * 2
        assert tried
        assert leases.ids[STUCK][0] not in set().union(*tried)

    play(database, act)


def test_each_queue_waits_once_for_locked_orgs(database: str, tried: list[set[int]]) -> None:
    """A batch that waits keeps its other orgs from the other queue, which then gives them up."""
    stuck, others = ORGS[10:30], ORGS[:10] + ORGS[30:]

    async def act(stage: Scene) -> None:
        leases = Leases(stage)
        await leases.open()
        async with locked(stage, "org", *stuck):
            tried.clear()
            asked, free = leases.ask(stuck, 1), leases.ask(others, 1)
            outcomes = await asyncio.gather(*free)
            assert [type(each) for each in outcomes] == [BeatResult, Reserved] * len(others)
            assert {type(each) for each in await asyncio.gather(*asked)} == {Unavailable}
        ids = {leases.ids[org][0] for org in stuck}
        assert len([orgs for orgs in tried if orgs & ids]) == 2

    play(database, act)


def test_a_lock_that_is_let_go_in_time_is_not_noticed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited is carried out once, without a word to its callers."""
    monkeypatch.setattr(batch_worker, "HELD_MAX_S", HANGS_S)

    async def act(stage: Scene) -> None:
        leases = Leases(stage)
        await leases.open()
        async with locked(stage, "org", STUCK):
            asked, stuck = leases.ask(OTHERS, 1), leases.ask([STUCK], 1)
            _, waiting = await asyncio.wait(asked, timeout=HANGS_S)
            assert not waiting
        outcomes = await asyncio.gather(*asked, *stuck)
        assert [type(each) for each in outcomes] == [BeatResult, Reserved] * len(ORGS)
        for org in (STUCK, OTHERS[0]):
            assert (await stage.balance(org)).spent == 5 * CREDIT

    play(database, act)


@pytest.mark.parametrize("which", LOCKS)
def test_many_locked_orgs_wait_together(database: str, which: str) -> None:
    """Whoever holds twenty, as a server that froze in a batch does, costs others no more."""
    stuck, others = ORGS[10:30], ORGS[:10] + ORGS[30:]

    async def act(stage: Scene) -> None:
        leases = Leases(stage)
        await leases.open()
        async with locked(stage, which, *stuck):
            asked, free = leases.ask(stuck, 1), leases.ask(others, 1)
            if which == "org":
                _, waiting = await asyncio.wait(free, timeout=HANGS_S)
                assert not waiting
                assert {type(each.result()) for each in free} == {BeatResult, Reserved}
            _, waiting = await asyncio.wait(asked + free, timeout=HANGS_S)
            assert not waiting
        outcomes = await asyncio.gather(*leases.ask(ORGS, 1))
        assert [type(each) for each in outcomes] == [BeatResult, Reserved] * len(ORGS)

    play(database, act)
