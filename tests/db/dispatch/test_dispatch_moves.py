"""Whoever waits without a pool waits in it once there is one: nobody walks past a capacity."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.core.command import CreateAccount, Issue
from gpucredits.service.dispatch.admission import Admitting
from gpucredits.store.dispatch import cycle as dispatch
from gpucredits.store.dispatch import pools
from gpucredits.store.dispatch.pools import NO_POOL, read_pool_rows
from gpucredits.store.dispatch.queue import QueueState
from support.scenes.scene import CREDIT, Scene, play
from support.scenes.stage import CAPACITY, Stage

WAITING, ADMITTED = QueueState.WAITING, QueueState.ADMITTED


async def poor_stage(base: Scene) -> tuple[Stage, tuple[int, int]]:
    """No pool, and a request of ``poor`` for four GPUs that waits for credits."""
    stage = Stage(base)
    await base.do(CreateAccount(path="poor"), org="poor")
    key = await stage.ask("poor", 4)
    await stage.dispatcher("one").cycle(NO_POOL)
    assert (await stage.ticket(key)).held_by == "credits"
    return stage, key


async def cycles(stage: Stage) -> None:
    """Both pools are looked at, some time later."""
    await stage.base.advance(11)
    for _ in range(2):
        for pool_id in (NO_POOL, stage.pool_id):
            await stage.dispatcher("one").cycle(pool_id)


def test_who_waits_for_credits_does_not_walk_past_a_capacity(database: str) -> None:
    """A pool is set and filled while it waits: with credits it waits for room, then starts."""

    async def act(base: Scene) -> None:
        stage, key = await poor_stage(base)
        await stage.prepare(preemption=False)
        await stage.fund("acme")
        first = await stage.ask("acme", CAPACITY)
        await cycles(stage)
        await base.do(Issue(account="poor", amount=100_000 * CREDIT), org="poor")
        await cycles(stage)
        assert await stage.held() == CAPACITY
        ticket = await stage.ticket(key)
        assert (ticket.state, ticket.position, ticket.reason) == (WAITING, 1, "capacity")
        await stage.settle(first)
        await cycles(stage)
        assert await stage.states([key]) == [ADMITTED]

    play(database, act)


def test_a_pool_that_is_taken_away_and_set_again_keeps_its_queue(database: str) -> None:
    """Nobody gets in beyond the capacity between the two."""

    async def act(base: Scene) -> None:
        stage = Stage(base)
        await stage.prepare(preemption=False)
        await stage.fund("acme")
        keys = [await stage.ask("acme", CAPACITY) for _ in range(2)]
        await cycles(stage)
        async with base.pool.acquire() as db:
            await pools.remove_pool(db, stage.pool_id)
        await stage.prepare(preemption=False)
        await cycles(stage)
        assert await stage.states(keys) == [ADMITTED, WAITING]
        assert await stage.held() == CAPACITY

    play(database, act)


def test_who_came_with_an_old_map_of_pools_waits_in_the_pool(database: str) -> None:
    """A server that has not heard of the pool yet: its request is not in the picture of no pool."""

    async def act(base: Scene) -> None:
        stage = Stage(base)
        await stage.prepare(preemption=False)
        await stage.fund("acme")
        here, stage.pool_id = stage.pool_id, NO_POOL
        key = await stage.ask("acme", CAPACITY + 1, allow_partial=True)
        async with base.pool.acquire() as db:
            picture = await read_pool_rows(db, NO_POOL)
        assert picture is not None
        assert picture.waiting == []
        stage.pool_id = here
        await cycles(stage)
        assert (await stage.ticket(key)).granted == 1_000 * CAPACITY

    play(database, act)


def test_a_decision_without_a_pool_is_void_once_there_is_one(database: str) -> None:
    """Between the picture and the claim a pool is set: nobody is let in past it."""

    async def act(base: Scene) -> None:
        stage = Stage(base)
        await stage.fund("acme")
        key = await stage.ask("acme", CAPACITY + 1)
        dispatcher = stage.dispatcher("one")
        async with base.pool.acquire() as db:
            lease = await dispatch.take_lease(db, NO_POOL, "one", lease_us=5_000_000)
        picture = await dispatcher.look(NO_POOL)
        assert lease is not None
        assert picture is not None
        cycle = await dispatcher.decide(picture)
        await stage.prepare()
        assert await dispatcher.apply(lease, cycle) is True
        assert await stage.states([key]) == [WAITING]

    play(database, act)


def test_who_is_being_let_in_when_a_pool_is_set_has_its_room(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is still to come: what it will hold is not given to another."""

    async def nothing(*_: object) -> bool:
        return False

    async def act(base: Scene) -> None:
        stage = Stage(base)
        await stage.fund("acme")
        with monkeypatch.context() as patch:
            patch.setattr(Admitting, "admit", nothing)
            patch.setattr(Admitting, "recover", nothing)
            first = await stage.ask("acme", CAPACITY)
            await stage.dispatcher("one").cycle(NO_POOL)
            await stage.prepare()
            second = await stage.ask("acme", 1)
            await cycles(stage)
            assert await stage.states([first, second]) == [QueueState.ADMITTING, WAITING]
        await cycles(stage)
        assert await stage.states([first, second]) == [ADMITTED, WAITING]

    play(database, act)


def test_other_types_of_gpu_do_not_move(database: str) -> None:
    """A pool of another type, or in another region, is none of its business."""

    async def act(base: Scene) -> None:
        others: list[dict[str, Any]] = [{"gpu_type": "a100"}, {"region": "north"}]
        stage, key = await poor_stage(base)
        for other in others:
            await stage.prepare(**other)
            await cycles(stage)
        assert (await stage.ticket(key)).pool_id == NO_POOL

    play(database, act)
