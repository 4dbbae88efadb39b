"""Work that was told to stop goes on when the request it makes room for no longer waits."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import Command, CreateAccount, Issue, Transfer, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.service.dispatch.dry_runs import BELIEVED_US
from gpucredits.service.write.acts import Act
from gpucredits.store.dispatch import cycle
from gpucredits.store.dispatch.pools import NO_POOL, GpuPool
from gpucredits.store.dispatch.queue import QueueState
from support.scenes.scene import CREDIT, Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on, told_to_stop

Key = tuple[int, int]
OUTBOX = "SELECT type FROM outbox WHERE type LIKE 'reservation.%ing' OR type LIKE '%.resumed'"


async def draining(stage: Stage, **waits: int) -> tuple[Key, Key]:
    """A job of hog that fills the pool and makes room for a request of meek: (job, request)."""
    await stage.fund("hog", "meek")
    job = await stage.ask("hog", CAPACITY)
    await stage.dispatcher("one").cycle(stage.pool_id)
    request = await stage.ask("meek", 4, **waits)
    await stage.dispatcher("one").cycle(stage.pool_id)
    assert (await stage.ticket(request)).reason == "making_room"
    assert await told_to_stop(stage) == 1
    return job, request


async def cancel(stage: Stage, request: Key) -> None:
    """Give up waiting."""
    act = Act(org_id=request[0], actor="tester")
    await stage.line.cancel(act, request)


async def beat(stage: Stage, job: Key, seq: int) -> BeatResult:
    """What the job hears."""
    lease = (await stage.ticket(job)).reservation_id
    [told] = await stage.base.ledger.beat([(job[0], Beat(lease, seq, seq * 10))])
    assert isinstance(told, BeatResult)
    return told


async def work(stage: Stage) -> list[int]:
    """Pools in which there is something to do."""
    async with stage.base.pool.acquire() as db:
        return await cycle.pools_with_work(db, usage_every_us=10**12)


@pytest.mark.parametrize("way", ["cancel", "expire"])
def test_work_goes_on_when_the_request_leaves(database: str, way: str) -> None:
    """Nobody else waits: the pool has work until the order is taken back, and the job hears it."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0, grace_ms=60_000) as stage:
            now = await base.pool.fetchval("SELECT ledger_now()")
            soon = {"deadline": now + 30_000_000} if way == "expire" else {}
            job, request = await draining(stage, **soon)
            assert (await beat(stage, job, 1)).decision == "drain"
            if way == "cancel":
                await cancel(stage, request)
            else:
                await base.advance(35)
            assert stage.pool_id in await work(stage)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            assert await work(stage) == []
            await base.advance(40)  # beyond the deadline of the order
            told = await beat(stage, job, 2)
            assert (told.decision, told.expires_in_ms) == ("continue", 3_600_000)
            kinds = [row["type"] for row in await base.pool.fetch(OUTBOX)]
            assert kinds == ["reservation.draining", "reservation.resumed"]

    play(database, act)


def test_work_goes_on_when_the_request_is_admitted_otherwise(database: str) -> None:
    """Another job ended and its room did: what else makes room for the request goes on."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await stage.fund("hog", "meek")
            first, second = [await stage.ask("hog", 4) for _ in range(2)]
            await stage.dispatcher("one").cycle(stage.pool_id)
            request = await stage.ask("meek", 4)
            await stage.dispatcher("one").cycle(stage.pool_id)
            stopping = await base.pool.fetchval(
                "SELECT reservation_id FROM reservations WHERE stopping_for <> 0"
            )
            jobs = {(await stage.ticket(key)).reservation_id: key for key in (first, second)}
            other = next(key for number, key in jobs.items() if number != stopping)
            await stage.settle(other)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await stage.states([request]) == [QueueState.ADMITTED]
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            assert (await beat(stage, jobs[stopping], 1)).decision == "continue"

    play(database, act)


@pytest.mark.parametrize("way", ["suspended", "out of credits"])
def test_work_goes_on_while_another_gate_holds_the_request(database: str, way: str) -> None:
    """The request still waits, but could not be let in: nobody is stopped for it until it could."""
    lost: dict[str, Command] = {
        "suspended": UpdateAccount(path="meek", status=Status.SUSPENDED),
        "out of credits": Transfer(source="meek", target="meek/other", amount=1_000_000 * CREDIT),
    }
    again: dict[str, Command] = {
        "suspended": UpdateAccount(path="meek", status=Status.ACTIVE),
        "out of credits": Issue(account="meek", amount=1_000_000 * CREDIT),
    }

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0, grace_ms=60_000) as stage:
            job, request = await draining(stage)
            await base.do(CreateAccount(path="meek/other"), org="meek")
            await base.do(lost[way], org="meek")
            await base.advance(BELIEVED_US // 1_000_000 + 1)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert (await stage.ticket(request)).held_by
            assert await told_to_stop(stage) == 0
            assert (await beat(stage, job, 1)).decision == "continue"
            await base.do(again[way], org="meek")
            await base.advance(600)  # beyond the time at which it is looked at again
            for _ in range(2):
                await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1

    play(database, act)


def test_work_stops_for_the_next_in_line_by_the_same_deadline(database: str) -> None:
    """The request leaves and another needs the room: the job drains on, for that one."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            _, request = await draining(stage)
            await stage.fund("next")
            later = await stage.ask("next", 4)
            before = await base.pool.fetchval("SELECT max(stopping_at) FROM reservations")
            await cancel(stage, request)
            await base.advance(5)
            await stage.dispatcher("one").cycle(stage.pool_id)
            row = await base.pool.fetchrow(
                "SELECT stopping_at, stopping_for FROM reservations WHERE stopping_at > 0"
            )
            assert tuple(row) == (before, later[1])
            assert (await stage.ticket(later)).reason == "making_room"

    play(database, act)


def test_work_stops_as_long_as_the_request_waits(database: str) -> None:
    """Cycles in between change nothing, and the lease of a silent node lapses with its grace."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0, grace_ms=30_000) as stage:
            _, request = await draining(stage)
            await base.advance(20)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1
            await base.advance(11)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await stage.states([request]) == [QueueState.ADMITTED]
            assert await stage.held() == 4

    play(database, act)


@pytest.mark.parametrize("way", ["open", "removed"])
def test_work_goes_on_when_the_pool_no_longer_gates(database: str, way: str) -> None:
    """Without a capacity nobody needs room."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await draining(stage)
            who: dict[str, Any] = {"actor": "tester", "request_id": ""}
            if way == "open":
                opened = GpuPool(gpu_type="h100", region="default")
                await stage.pools.set(Act(org_id=0, **who), opened)
            else:
                await stage.pools.remove(Act(org_id=0, **who), "h100", "default")
            pool_id = stage.pool_id if way == "open" else NO_POOL
            assert pool_id in await work(stage)
            await stage.dispatcher("one").cycle(pool_id)
            assert await told_to_stop(stage) == 0
            assert await work(stage) == []

    play(database, act)
