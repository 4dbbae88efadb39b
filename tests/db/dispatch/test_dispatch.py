"""Dispatchers on a real database: never too much, never twice, never lost, whoever dies when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gpucredits.core.command import SetQuota, Settle
from gpucredits.core.outcome import QuotaSaved, Reserved
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.jobs.dispatcher import Dispatching
from gpucredits.service.dispatch import queue as queue_service
from gpucredits.service.dispatch.admission import Admitting
from gpucredits.service.dispatch.cycle import USAGE_EVERY_US, Dispatcher
from gpucredits.service.dispatch.queue import QueueFull, answer_of
from gpucredits.store.dispatch import cycle as dispatch
from gpucredits.store.dispatch.queue import QueuedRequest, QueueState
from support.scenes.scene import HOUR_US, Scene, play, scene
from support.scenes.stage import CAPACITY, Stage, stage_on


def test_never_over_capacity_with_two_dispatchers(database: str) -> None:
    """64 at once, two replicas that both dispatch whenever they can: never more than there is."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage, scene(database) as other:
            await stage.fund("acme", "beta")
            keys = await asyncio.gather(
                *(stage.ask(("acme", "beta")[n % 2], 1 + n % 3) for n in range(64))
            )
            # Leases that have lapsed as soon as they are given: both always take the pool over.
            one = stage.dispatcher("one", lease_us=0)
            two = Dispatcher(other.ledger, holder="two", lease_us=0)
            for _ in range(12):
                await asyncio.gather(one.cycle(stage.pool_id), two.cycle(stage.pool_id))
                assert await stage.held() <= CAPACITY
                for key in keys:
                    if (await stage.ticket(key)).state == QueueState.ADMITTED:
                        await _settle_if_live(stage, key)
            while not all(state == QueueState.ADMITTED for state in await stage.states(keys)):
                await asyncio.gather(one.cycle(stage.pool_id), two.cycle(stage.pool_id))
                assert await stage.held() <= CAPACITY
                for key in keys:
                    if (await stage.ticket(key)).state == QueueState.ADMITTED:
                        await _settle_if_live(stage, key)
            leases = {(key[0], (await stage.ticket(key)).reservation_id) for key in keys}
            count = await base.pool.fetchval("SELECT count(*) FROM reservations")
            assert len(leases) == count == 64

    play(database, act)


async def _settle_if_live(stage: Stage, key: tuple[int, int]) -> None:
    lease = (await stage.ticket(key)).reservation_id
    await stage.base.ledger.submit(key[0], stage.base.request(Settle(reservation_id=lease)))


def test_a_claim_on_an_old_picture_is_refused(database: str) -> None:
    """Two that froze the same picture: the second lets nobody in. The version is the guard."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            keys = [await stage.ask("acme", CAPACITY) for _ in range(2)]
            one, two = stage.dispatcher("one", lease_us=0), stage.dispatcher("two", lease_us=0)
            for each in (one, two):
                async with base.pool.acquire() as db:
                    lease = await dispatch.take_lease(db, stage.pool_id, each.holder, lease_us=0)
                assert lease is not None
            picture = await two.look(stage.pool_id)
            assert picture is not None
            cycle = await two.decide(picture)
            assert await one.cycle(stage.pool_id) is False
            async with base.pool.acquire() as db:
                lease = await dispatch.take_lease(db, stage.pool_id, "two", lease_us=0)
            assert lease is not None
            assert await two.apply(lease._replace(version=picture.version), cycle) is True
            assert await stage.held() == CAPACITY
            states = await stage.states(keys)
            assert states == [QueueState.ADMITTED, QueueState.WAITING]

    play(database, act)


@pytest.mark.parametrize("asked", [False, True], ids=["before the ledger", "after the ledger"])
def test_a_dispatcher_that_dies_between_claim_and_ledger(
    database: str, monkeypatch: pytest.MonkeyPatch, *, asked: bool
) -> None:
    """Its requests are neither lost nor admitted twice: the next one finishes what it began."""

    class Died(Exception):  # noqa: N818  # it states what happened
        pass

    async def die(self: Admitting, claimed: Sequence[QueuedRequest], *_: object) -> bool:
        if asked:
            for each in claimed:
                await self._ask([each], {})
        raise Died

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            keys = [await stage.ask("acme", 3) for _ in range(4)]
            with monkeypatch.context() as patch:
                patch.setattr(Admitting, "admit", die)
                with pytest.raises(Died):
                    await stage.dispatcher("dead", lease_us=0).cycle(stage.pool_id)
            assert await stage.held() == (6 if asked else 0)
            next_one = stage.dispatcher("next")
            for _ in range(3):
                await next_one.cycle(stage.pool_id)
                assert await stage.held() == 6
            states = await stage.states(keys)
            assert states == [QueueState.ADMITTED] * 2 + [QueueState.WAITING] * 2
            assert await base.pool.fetchval("SELECT count(*) FROM reservations") == 2

    play(database, act)


def test_what_is_on_its_way_to_the_ledger_has_its_room(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the ledger has not answered, the room of a request is taken."""

    async def nothing(*_: object) -> bool:
        return False

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            first = await stage.ask("acme", 6)
            with monkeypatch.context() as patch:
                patch.setattr(Admitting, "admit", nothing)
                patch.setattr(Admitting, "recover", nothing)
                dispatcher = stage.dispatcher("slow")
                await dispatcher.cycle(stage.pool_id)
                second = await stage.ask("acme", 6)
                await dispatcher.cycle(stage.pool_id)
                assert await stage.states([first, second]) == [
                    QueueState.ADMITTING,
                    QueueState.WAITING,
                ]

    play(database, act)


def test_one_dispatcher_at_a_time_until_its_lease_lapses(database: str) -> None:
    """Another waits while the holder's lease runs, and takes over when it has lapsed."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            one, two = stage.dispatcher("one"), stage.dispatcher("two")
            await one.cycle(stage.pool_id)
            key = await stage.ask("acme")
            await two.cycle(stage.pool_id)
            assert await stage.states([key]) == [QueueState.WAITING]
            await base.advance(6)
            await two.cycle(stage.pool_id)
            assert await stage.states([key]) == [QueueState.ADMITTED]
            await two.release()
            later = await stage.ask("acme")
            await one.cycle(stage.pool_id)
            assert await stage.states([later]) == [QueueState.ADMITTED]

    play(database, act)


def test_waiting_for_quota_ends_when_there_is_room_under_it(database: str) -> None:
    """With a quota of three GPUs the second job waits, and starts when the first has ended."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme", "beta")
            quota = SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=3_000)
            assert isinstance(await base.do(quota), QuotaSaved)
            first, second = await stage.ask("acme", 2), await stage.ask("acme", 2)
            other = await stage.ask("beta", 4)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            await dispatcher.cycle(stage.pool_id)
            held = await stage.ticket(second)
            assert (held.state, held.held_by) == (QueueState.WAITING, "quota")
            assert "concurrent GPUs" in held.held_sentence
            assert await stage.states([first, other]) == [QueueState.ADMITTED] * 2
            await stage.settle(first)
            await base.advance(11)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([second]) == [QueueState.ADMITTED]

    play(database, act)


def test_what_can_never_pass_does_not_wait(database: str) -> None:
    """A request that alone is over a limit is refused, with the limit's numbers."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            quota = SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=3_000)
            await base.do(quota)
            key = await stage.ask("acme", 4)
            await stage.dispatcher("one").cycle(stage.pool_id)
            ticket = await stage.ticket(key)
            assert ticket.state == QueueState.REFUSED
            said = answer_of(ticket)
            assert isinstance(said, Refused)
            assert said.reason == "quota_exceeded"

    play(database, act)


def test_partial_takes_what_a_quota_leaves(database: str) -> None:
    """Six were asked for, a quota leaves three: three it is."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            await base.do(
                SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=3_000)
            )
            key = await stage.ask("acme", 6, allow_partial=True)
            dispatcher = stage.dispatcher("one")
            assert await dispatcher.cycle(stage.pool_id) is True
            await dispatcher.cycle(stage.pool_id)
            ticket = await stage.ticket(key)
            assert (ticket.state, ticket.granted) == (QueueState.ADMITTED, 3_000)
            outcome = answer_of(ticket)
            assert isinstance(outcome, Reserved)
            assert outcome.reservation.milli_gpus == 3_000

    play(database, act)


def test_a_canceled_member_takes_its_gang_along(database: str) -> None:
    """A gang of which one was canceled between decision and claim starts nobody."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            keys = [await stage.ask("acme", 2, gang="g", gang_size=2) for _ in range(2)]
            dispatcher = stage.dispatcher("one")
            async with base.pool.acquire() as db:
                lease = await dispatch.take_lease(db, stage.pool_id, "one", lease_us=5_000_000)
            picture = await dispatcher.look(stage.pool_id)
            assert lease is not None
            assert picture is not None
            cycle = await dispatcher.decide(picture)
            assert len(cycle.decisions.admissions) == 2
            await base.pool.execute("UPDATE queue SET state = 3 WHERE queue_id = $1", keys[0][1])
            await dispatcher.apply(lease, cycle)
            assert await stage.states(keys) == [QueueState.CANCELED, QueueState.WAITING]
            assert await stage.held() == 0

    play(database, act)


def test_an_org_may_not_flood_the_queue(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its bound an org's requests are turned away; other orgs still get in."""
    monkeypatch.setattr(queue_service, "ORG_WAITING_MAX", 3)

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme", "beta")
            for _ in range(3):
                await stage.ask("acme", CAPACITY)
            with pytest.raises(QueueFull):
                await stage.ask("acme", 1)
            await stage.ask("beta", 1)

    play(database, act)


def test_lapsed_leases_give_their_room_back(database: str) -> None:
    """A node that fell silent: the dispatcher writes its lapse down and uses the room."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            first = await stage.ask("acme", CAPACITY)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            second = await stage.ask("acme", CAPACITY)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([first, second]) == [
                QueueState.ADMITTED,
                QueueState.WAITING,
            ]
            await base.advance(3_601)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([second]) == [QueueState.ADMITTED]
            assert await stage.held() == CAPACITY

    play(database, act)


def test_a_pool_whose_past_use_is_kept_is_no_work_in_between(database: str) -> None:
    """While nobody waits it is looked at when its use is to be kept, and not each second."""

    async def act(base: Scene) -> None:
        async with stage_on(base, half_life_ms=3_600_000) as stage:
            await stage.fund("acme")
            job = Dispatching(base.ledger, stage.pools)
            kept = "UPDATE pool_dispatch SET used_until = ledger_now() - $1 WHERE pool_id = $2"
            cycles = []
            for ago_us in (USAGE_EVERY_US, -HOUR_US, USAGE_EVERY_US):
                await base.pool.execute(kept, ago_us, stage.pool_id)
                await job.tick()
                cycles.append(job.cycles)
            assert cycles == [1, 1, 2]
            await base.pool.execute(kept, -HOUR_US, stage.pool_id)
            key = await stage.ask("acme")
            await job.tick()
            assert job.cycles == 3
            assert await stage.states([key]) == [QueueState.ADMITTED]

    play(database, act)
