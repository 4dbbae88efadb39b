"""Who may make others stop: only those whom every other gate would let in."""

from __future__ import annotations

import pytest

from gpucredits.core.command import Issue, SetQuota
from gpucredits.core.fairshare.decisions import OVER_POOL
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.service.dispatch.dry_runs import Survey
from gpucredits.service.dispatch.queue import answer_of
from gpucredits.service.write.errors import Busy
from gpucredits.store.dispatch.queue import QueuedRequest, QueueState
from support.scenes.scene import CREDIT, Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on, told_to_stop


async def full_pool(stage: Stage, *, jobs: int = 2, gpus: int = 4) -> list[tuple[int, int]]:
    """A pool that ``vic`` holds with paying work."""
    await stage.fund("vic", amount=1_000_000)
    keys = [await stage.ask("vic", gpus) for _ in range(jobs)]
    await stage.dispatcher("one").cycle(stage.pool_id)
    assert await stage.states(keys) == [QueueState.ADMITTED] * jobs
    return keys


def nobody(_: Survey) -> dict[str, QueuedRequest]:
    """Nobody is asked about before it is let in, as if what it could pay with went just then."""
    return {}


def test_who_cannot_pay_stops_nobody(database: str) -> None:
    """A request that credits hold back waits for them; once they are there it makes its room."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage)
            await stage.fund("evil", amount=1)
            key = await stage.ask("evil", 4)
            dispatcher = stage.dispatcher("one")
            for _ in range(3):
                await dispatcher.cycle(stage.pool_id)
                assert await told_to_stop(stage) == 0
            ticket = await stage.ticket(key)
            assert (ticket.state, ticket.held_by) == (QueueState.WAITING, "credits")
            assert "1 credit available" in ticket.held_sentence
            await base.do(Issue(account="evil", amount=100_000 * CREDIT), org="evil")
            await base.advance(11)
            await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1

    play(database, act)


def test_what_a_quota_never_allows_stops_nobody(database: str) -> None:
    """A tenant that may have no GPU at all is refused, and nobody's work ends for it."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage)
            await stage.fund("zero")
            quota = SetQuota(account="zero", dimension=Dimension.CONCURRENT_GPUS, limit=0)
            await base.do(quota, org="zero")
            key = await stage.ask("zero", 4)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            ticket = await stage.ticket(key)
            assert ticket.state == QueueState.REFUSED
            assert getattr(answer_of(ticket), "reason", None) == "quota_exceeded"

    play(database, act)


def test_a_gang_that_cannot_pay_whole_stops_nobody(database: str) -> None:
    """Each member could pay on its own, all of them cannot: they wait for credits."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage)
            await stage.fund("gang", amount=10_000)  # a member holds 7,200
            keys = [await stage.ask("gang", 2, gang="g", gang_size=2) for _ in range(2)]
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            assert {(await stage.ticket(key)).held_by for key in keys} == {"credits"}

    play(database, act)


def test_the_next_in_line_makes_room_when_the_first_may_not(database: str) -> None:
    """Whoever cannot pay stands in nobody's way: the next is decided about in the same cycle."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage, jobs=4, gpus=2)
            await stage.fund("evil", amount=1)
            await stage.fund("good")
            evil, good = await stage.ask("evil", 2), await stage.ask("good", 2)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1
            assert (await stage.ticket(evil)).held_by == "credits"
            assert (await stage.ticket(good)).reason == "making_room"

    play(database, act)


def test_fewer_gpus_are_asked_for_before_work_is_stopped(database: str) -> None:
    """With allow_partial, no more work is stopped than for the GPUs that it can pay for."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage, jobs=CAPACITY, gpus=1)
            await stage.fund("part", amount=7_500)  # two GPUs for an hour
            await stage.ask("part", 4, allow_partial=True)
            await stage.dispatcher("one").cycle(stage.pool_id)
            assert await told_to_stop(stage) == 2

    play(database, act)


def test_room_that_was_not_taken_after_all_is_used_before_work_is_stopped(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPUs that one who cannot pay was given for a moment go to the next, and nobody stops."""
    monkeypatch.setattr(Survey, "doubtful", nobody)

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage, jobs=3, gpus=2)
            await stage.fund("evil", amount=1)
            await stage.fund("good")
            evil, good = await stage.ask("evil", 2), await stage.ask("good", 2)
            dispatcher = stage.dispatcher("one")
            assert await dispatcher.cycle(stage.pool_id) is True
            await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            assert await stage.states([evil, good]) == [QueueState.WAITING, QueueState.ADMITTED]

    play(database, act)


def test_a_stream_that_cannot_pay_does_not_put_preemption_off_for_ever(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody new who cannot pay comes before every cycle; room is made all the same."""
    monkeypatch.setattr(Survey, "doubtful", nobody)

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage, jobs=3, gpus=2)
            await stage.fund("evil", amount=1)
            await stage.fund("good")
            await stage.ask("good", 3)
            dispatcher = stage.dispatcher("one")
            for _ in range(2):
                await stage.ask("evil", 2, is_patient=False)
                await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 2

    play(database, act)


def test_nobody_is_stopped_while_the_ledger_cannot_say(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the ledger is too busy to be asked, the next cycle asks again."""

    async def act(base: Scene) -> None:
        async with stage_on(base, min_runtime_ms=0) as stage:
            await full_pool(stage)
            await stage.fund("good")
            await stage.ask("good", 4)
            dispatcher = stage.dispatcher("one")

            async def busy(*_: object, **__: object) -> None:
                raise Busy(1.0)

            with monkeypatch.context() as patch:
                patch.setattr(base.ledger, "submit_all", busy)
                patch.setattr(base.ledger, "sweep", busy)
                await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1

    play(database, act)


def test_a_job_that_lied_about_its_time_makes_room_for_the_head(database: str) -> None:
    """It overtook for a minute and stays: when the rest of the head's room is there, it stops."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("base", "head", "liar")
            first = await stage.ask("base", 6, expected_ms=600_000)
            dispatcher = stage.dispatcher("one")
            await dispatcher.cycle(stage.pool_id)
            head = await stage.ask("head", 8)
            await dispatcher.cycle(stage.pool_id)
            liar = await stage.ask("liar", 2, expected_ms=60_000)
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([liar]) == [QueueState.ADMITTED]
            estimate = (await stage.ticket(head)).starts_at
            await base.advance(300)
            await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 0
            assert abs((await stage.ticket(head)).starts_at - estimate) < 5_000_000
            await stage.settle(first)
            await dispatcher.cycle(stage.pool_id)
            assert await told_to_stop(stage) == 1
            assert (await stage.ticket(head)).reason == "making_room"

    play(database, act)


def test_what_is_larger_than_the_pool_does_not_wait(database: str) -> None:
    """It is refused at the first look, a gang with its last member; what is smaller waits on."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await full_pool(stage)
            await stage.fund("acme")
            dispatcher = stage.dispatcher("one")
            large = await stage.ask("acme", CAPACITY + 1)
            some = await stage.ask("acme", CAPACITY + 1, allow_partial=True)
            fits = await stage.ask("acme", CAPACITY)
            gang = [await stage.ask("acme", 5, gang="g", gang_size=2)]
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states([large, some, fits, *gang]) == [
                QueueState.REFUSED,
                *[QueueState.WAITING] * 3,
            ]
            said = answer_of(await stage.ticket(large))
            assert isinstance(said, Refused)
            assert said.message == f"It needs 9 GPUs, and the whole pool has 8. {OVER_POOL}"
            gang.append(await stage.ask("acme", 5, gang="g", gang_size=2))
            await dispatcher.cycle(stage.pool_id)
            assert await stage.states(gang) == [QueueState.REFUSED] * 2
            await stage.prepare(milli_gpus=4_000)
            await dispatcher.cycle(stage.pool_id)
            ticket = await stage.ticket(fits)
            assert (ticket.state, ticket.reason) == (QueueState.WAITING, "exceeds_pool")

    play(database, act)
