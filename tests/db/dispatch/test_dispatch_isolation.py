"""One org that the ledger cannot answer for holds up itself, and nobody else's turn."""

from __future__ import annotations

import pytest

from gpucredits.core.command import Issue
from gpucredits.service.dispatch import admission
from gpucredits.store.dispatch.queue import QueueState
from support.scenes.scene import CREDIT, Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on
from support.servers.deaf import WAYS, Deaf
from support.waiting import HANGS_S

WAITING, ADMITTING, ADMITTED = QueueState.WAITING, QueueState.ADMITTING, QueueState.ADMITTED
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(autouse=True)
def left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who never answers is left alone for longer than a test lasts."""
    monkeypatch.setattr(admission, "LEFT_ALONE_S", 10 * HANGS_S)


async def deaf_to(stage: Stage, org: str, way: str, patch: pytest.MonkeyPatch) -> Deaf:
    """The ledger does not answer for an org from now on."""
    org_id = await stage.base.ledger.org_id(org)
    assert org_id is not None
    return Deaf(stage.base.ledger, org_id, way, patch)


@each_way
def test_a_request_that_is_asked_about_again(
    database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It waits for credits, and the ledger cannot say whether they have come: others get in."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("deaf", amount=1)
            await stage.fund("good")
            key = await stage.ask("deaf", 4)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            assert (await stage.ticket(key)).held_by == "credits"
            await base.do(Issue(account="deaf", amount=100_000 * CREDIT), org="deaf")
            await base.advance(11)
            with monkeypatch.context() as patch:
                deaf = await deaf_to(stage, "deaf", way, patch)
                good = await stage.ask("good", 4, is_patient=False)
                for _ in range(2):
                    await dispatcher.cycle(stage.pool_id)
                assert await stage.states([key, good]) == [WAITING, ADMITTED]
                assert deaf.asked == 1  # and not again at once
            await base.advance(11)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await stage.states([key]) == [ADMITTED]

    play(database, act)


@each_way
def test_a_lease_that_has_lapsed(database: str, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """It counts until the ledger says so; what another's lapse has left is given away."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("deaf", "good")
            for org in ("deaf", "good"):
                await stage.ask(org, 4)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            await base.advance(3_601)
            keys = [await stage.ask("good", 4) for _ in range(2)]
            with monkeypatch.context() as patch:
                await deaf_to(stage, "deaf", way, patch)
                await dispatcher.cycle(stage.pool_id)
                assert await stage.states(keys) == [ADMITTED, WAITING]
                assert await stage.held() == CAPACITY

    play(database, act)


@each_way
def test_a_request_for_which_work_would_be_stopped(
    database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Nobody is stopped for the one, and somebody is for the other."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await stage.fund("vic", "deaf", "good")
            for _ in range(4):
                await stage.ask("vic", 2)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            await stage.ask("deaf", 2)
            await stage.ask("good", 2)
            with monkeypatch.context() as patch:
                await deaf_to(stage, "deaf", way, patch)
                await dispatcher.cycle(stage.pool_id)
            query = "SELECT count(*) FROM reservations WHERE state = 0 AND stopping_at > 0"
            assert await base.pool.fetchval(query) == 1

    play(database, act)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "undecidable"])
def test_a_request_that_has_its_room(
    database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It keeps its room until the ledger answers; who was let in beside it is told so."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("deaf", "good")
            keys = [await stage.ask(org, 4) for org in ("deaf", "good")]
            with monkeypatch.context() as patch:
                await deaf_to(stage, "deaf", way, patch)
                for _ in range(2):
                    await stage.dispatcher("one").cycle(stage.pool_id)
                assert await stage.states(keys) == [ADMITTING, ADMITTED]
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await stage.states(keys) == [ADMITTED] * 2

    play(database, act)


def test_a_request_that_cannot_be_decided_gives_its_room_back(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was saved for it, so the whole pool does not wait until somebody mends its rows."""

    async def act(base: Scene) -> None:
        async with stage_on(base, preemption=False) as stage:
            await stage.fund("deaf", "good")
            keys = [await stage.ask("deaf", CAPACITY)]
            dispatcher = stage.dispatcher("one")
            with monkeypatch.context() as patch:
                await deaf_to(stage, "deaf", "undecidable", patch)
                await dispatcher.cycle(stage.pool_id)
                assert (await stage.ticket(keys[0])).held_by == "the ledger"
                keys.append(await stage.ask("good", CAPACITY))
                await dispatcher.cycle(stage.pool_id)
                assert await stage.states(keys) == [WAITING, ADMITTED]
            await stage.settle(keys[1])
            await base.advance(11)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states(keys) == [ADMITTED] * 2

    play(database, act)


@each_way
def test_work_that_is_to_stop(database: str, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """The order that cannot be given is given again later; the cycle tells everybody else."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await stage.fund("deaf", "good")
            await stage.ask("deaf", CAPACITY)
            await stage.dispatcher("one").cycle(stage.pool_id)
            key = await stage.ask("good", 4)
            with monkeypatch.context() as patch:
                await deaf_to(stage, "deaf", way, patch)
                await stage.dispatcher("one").cycle(stage.pool_id)
            assert (await stage.ticket(key)).reason == "making_room"

    play(database, act)


def test_who_was_silent_is_left_alone_for_a_while(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle waits for a silent org once, not for each of its requests and not every time."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("deaf", "good")
            keys = [await stage.ask("deaf", 1) for _ in range(3)]
            with monkeypatch.context() as patch:
                deaf = await deaf_to(stage, "deaf", "silent", patch)
                dispatcher = stage.dispatcher("one")
                for _ in range(4):
                    await dispatcher.cycle(stage.pool_id)
                assert await stage.states(keys) == [ADMITTING] * 3
                assert deaf.asked == 3

    play(database, act)
