"""Measured use through a bus: each event counts once, and poison is put aside."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from gpucredits.core import ids
from gpucredits.metering.bus import BusUnavailable, Topic
from gpucredits.metering.standing import PipelineStanding
from gpucredits.service.metering.dead_letters import (
    LetterGone,
    LetterState,
    PoisonError,
    drop_letter,
    list_letters,
    read_letter,
    replay_letter,
)
from gpucredits.service.write.acts import Act
from gpucredits.store.billing.usage_events import Measured
from gpucredits.wire.metering.usage_message import MeasuredUse, UsageMessage
from support.engines.nats_server import NatsServer
from support.scenes.metering import (
    PROVER,
    drain,
    measured_of,
    opened,
    pipeline_on,
    publish_raw,
    use,
)
from support.scenes.scene import Scene, play

STAFF = Act(org_id=0, actor="key_0_1", request_id="r")


def test_use_counts_once_however_often_it_comes(database: str, address: str) -> None:
    """Repeated and reordered events give the sums of the distinct ones, and verify agrees."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, address) as pipeline:
            await pipeline.publish_use(use(lease, range(10, 20)))
            await pipeline.publish_use(use(lease, range(15)))
            await drain(pipeline)
            await pipeline.publish_use(use(lease, range(20)))
            await drain(pipeline)
            assert await measured_of(stage.pool, lease) == Measured(20_000, 20)
            assert pipeline.standing.state == "moving"

    play(database, act)


def test_two_servers_share_the_work(database: str) -> None:
    """Two readers at once use every message once, whichever of them gets which."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with (
            pipeline_on(stage.pool, "postgres") as one,
            pipeline_on(stage.pool, "postgres") as other,
        ):
            for seq in range(60):
                await one.publish_use(use(lease, [seq]))

            async def read(pipeline: Any) -> None:
                while (await measured_of(stage.pool, lease)).events < 60:
                    await pipeline.intake.step()

            await asyncio.gather(read(one), read(other))
            assert await measured_of(stage.pool, lease) == Measured(60_000, 60)
            held = await stage.pool.fetchval("SELECT count(*) FROM bus_messages")
            assert held == 0, "what has taken effect is forgotten"

    play(database, act)


def mended_message(lease: int) -> UsageMessage:
    """A message as people write it."""
    reservation_id = ids.format_id(ids.RESERVATION, 1, lease)
    event = MeasuredUse(
        job_id="train", node="n1", seq=7, used_ms=1_000, reservation_id=reservation_id
    )
    return UsageMessage(org_id=1, events=[event])


NUL_IN_PAYLOAD = (
    b'{"org_id": 1, "events": [{"job_id": "train", "reservation_id": "LEASE", "seq": 1,'
    b' "used_ms": 1, "payload": {"gpu_type": "\\u0000"}}]}'
)
NUL_IN_NAME = (
    b'{"org_id": 1, "events": [{"job_id": "tr\\u0000in", "reservation_id": "LEASE", "seq": 1,'
    b' "used_ms": 1}]}'
)
POISON = {
    "unreadable": (b"\xff\xfe no json", b"[]", b'{"org_id": 1, "events": []}'),
    "unknown": (
        msgspec.json.encode(mended_message(999)),
        b'{"org_id": 77, "events": [{"job_id": "j", "account_id": 5, "seq": 1, "used_ms": 1}]}',
    ),
    "refused": (NUL_IN_PAYLOAD, NUL_IN_NAME),
}


def test_poison_is_put_aside_and_the_rest_goes_on(database: str) -> None:
    """Messages that cannot be used become dead letters; those around them count."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        name = ids.format_id(ids.RESERVATION, 1, lease).encode()
        async with pipeline_on(stage.pool, "postgres") as pipeline:
            await pipeline.publish_use(use(lease, [1]))
            for bodies in POISON.values():
                for body in bodies:
                    await publish_raw(pipeline.bus, body.replace(b"LEASE", name))
            await pipeline.publish_use(use(lease, [2]))
            await drain(pipeline)
            assert await measured_of(stage.pool, lease) == Measured(2_000, 2)
            assert pipeline.standing.dead_letters == sum(map(len, POISON.values()))
        letters = await list_letters(stage.pool, state=LetterState.WAITING, before=99, limit=99)
        wanted = [reason for reason, bodies in POISON.items() for _ in bodies]
        assert sorted(letter.reason for letter in letters) == sorted(wanted)
        assert all(letter.detail for letter in letters)

    play(database, act)


def test_a_dead_letter_is_mended_and_replayed_once(database: str) -> None:
    """A letter that still cannot be used stays; a mended one takes effect once and is audited."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, "postgres") as pipeline:
            await publish_raw(pipeline.bus, msgspec.json.encode(mended_message(999)))
            await publish_raw(pipeline.bus, b"rubbish")
            await drain(pipeline)
        rubbish, wrong = await list_letters(stage.pool, state=None, before=99, limit=9)
        with pytest.raises(PoisonError, match="has no lease 999"):
            await replay_letter(stage.pool, STAFF, wrong.letter_id, prover=PROVER)
        mended = mended_message(lease)
        done = await replay_letter(stage.pool, STAFF, wrong.letter_id, prover=PROVER, mended=mended)
        assert done.letter.state is LetterState.REPLAYED
        assert done.letter.decided_by == "key_0_1"
        with pytest.raises(LetterGone):
            await replay_letter(stage.pool, STAFF, wrong.letter_id, prover=PROVER, mended=mended)
        with pytest.raises(LetterGone):
            await drop_letter(stage.pool, STAFF, wrong.letter_id)
        assert await measured_of(stage.pool, lease) == Measured(1_000, 1)
        await drop_letter(stage.pool, STAFF, rubbish.letter_id)
        dropped = await read_letter(stage.pool, rubbish.letter_id)
        assert dropped is not None
        assert (dropped.state, dropped.body) == (LetterState.DROPPED, b"rubbish")
        acts = await stage.pool.fetch(
            "SELECT action, new ->> 'mended' AS mended FROM audit_log"
            " WHERE action LIKE 'dead_letter%' ORDER BY audit_id"
        )
        assert [row["action"] for row in acts] == ["dead_letter.replay", "dead_letter.drop"]
        assert msgspec.json.decode(acts[0]["mended"], type=UsageMessage) == mended

    play(database, act)


def test_a_replay_and_its_act_are_one_transaction(database: str) -> None:
    """A replay in a dry run leaves nothing: neither use, nor the letter's state, nor an act."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, "postgres") as pipeline:
            await publish_raw(pipeline.bus, b"rubbish")
            await drain(pipeline)
        [letter] = await list_letters(stage.pool, state=None, before=99, limit=9)
        dry = Act(org_id=0, actor="key_0_1", dry_run=True)
        await replay_letter(
            stage.pool, dry, letter.letter_id, prover=PROVER, mended=mended_message(lease)
        )
        assert await measured_of(stage.pool, lease) == Measured()
        after = await read_letter(stage.pool, letter.letter_id)
        assert after is not None
        assert after.state is LetterState.WAITING

    play(database, act)


def test_a_stream_that_was_made_anew_is_read_from_its_beginning(
    database: str, own_nats: NatsServer
) -> None:
    """A bus that lost its data gives new positions: they are not mistaken for old ones."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, own_nats.url) as pipeline:
            for seq in range(5):
                await pipeline.publish_use(use(lease, [seq]))
            await drain(pipeline)
            own_nats.kill()
            own_nats.wipe()
            own_nats.start()
            await patiently(pipeline, lease, 5)
            await drain(pipeline)
            assert await measured_of(stage.pool, lease) == Measured(6_000, 6)
            assert pipeline.standing.restarts
            assert not pipeline.standing.lost

    play(database, act)


async def patiently(pipeline: Any, lease: int, seq: int) -> None:
    """Publish one event again and again until the bus has it."""
    while True:
        try:
            await pipeline.publish_use(use(lease, [seq]))
        except BusUnavailable:
            continue
        return


def test_messages_that_the_bus_gave_up_are_an_alarm(database: str, own_nats: NatsServer) -> None:
    """What is purged before it was read is counted as lost, and reading goes on behind it."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, own_nats.url) as pipeline:
            await pipeline.publish_use(use(lease, [0]))
            await drain(pipeline)
            for seq in range(1, 6):
                await pipeline.publish_use(use(lease, [seq]))
            client = await pipeline.bus._streams(Topic.USAGE)  # type: ignore[attr-defined]  # NATS
            await client.jetstream().purge_stream("gpucredits-usage-1", seq=5)
            await drain(pipeline)
            assert pipeline.standing.lost == 3
            assert (await measured_of(stage.pool, lease)).events == 3

    play(database, act)


def state_of(standing: PipelineStanding) -> str:
    """How the pipeline stands now."""
    return standing.state


def test_health_means_progress(database: str, own_nats: NatsServer) -> None:
    """A bus that is away is told at once; work that does not move is told as a stall."""

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, own_nats.url) as pipeline:
            standing = pipeline.standing
            await pipeline.publish_use(use(lease, [1]))
            own_nats.kill()
            with pytest.raises(BusUnavailable):
                await pipeline.intake.step()
            assert state_of(standing) == "away"
            own_nats.start()
            async with stage.pool.acquire() as other, other.transaction():
                await pipeline.intake.step()  # makes the rows of progress, and moves
                await pipeline.publish_use(use(lease, [2]))
                await other.execute("SELECT FROM bus_progress FOR UPDATE")  # somebody hangs
                pipeline.intake._looked_s = 0.0
                await pipeline.intake.step()
                assert (state_of(standing), standing.usage.lag) == ("moving", 1)
                standing.usage.moved_s -= 31
                assert state_of(standing) == "stalled"
            await drain(pipeline)
            assert (state_of(standing), standing.usage.lag) == ("moving", 0)

    play(database, act)
