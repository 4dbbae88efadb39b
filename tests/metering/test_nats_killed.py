"""NATS is killed and started again under load: no event is lost, and none counts twice."""

from __future__ import annotations

import asyncio

import pytest
from nats.js.api import StorageType

from gpucredits.metering.bus import BusUnavailable
from gpucredits.metering.nats_bus import NatsBus
from gpucredits.metering.pipeline import Pipeline
from gpucredits.store.billing.usage_events import Measured
from support.engines.nats_server import NatsServer
from support.scenes.metering import drain, measured_of, opened, pipeline_on, use
from support.scenes.scene import Scene, play

EVENTS = 200
WRITERS = 4
KILLS_AT = (40, 120)  # events that were acknowledged


def counted(  # noqa: C901  # it tells one story
    dsn: str, server: NatsServer, *, reads: bool = True
) -> tuple[Measured, int]:
    """What was counted of events that writers repeat until the bus has them; and failures.

    With ``reads`` a reader is at work meanwhile; else one reads at the end only.
    """

    async def act(stage: Scene) -> tuple[Measured, int]:  # noqa: C901  # it tells one story
        lease = await opened(stage)
        acknowledged: list[int] = []
        failures = 0
        reached = {count: asyncio.Event() for count in KILLS_AT}

        async def write(pipeline: Pipeline, first: int) -> None:
            nonlocal failures
            for seq in range(first, EVENTS, WRITERS):
                while True:
                    try:
                        await pipeline.publish_use(use(lease, [seq]))
                    except BusUnavailable:
                        failures += 1
                    else:
                        acknowledged.append(seq)
                        if len(acknowledged) in reached:
                            reached[len(acknowledged)].set()
                        break

        async def read(pipeline: Pipeline) -> None:
            while reads:
                try:
                    await pipeline.intake.step()
                except BusUnavailable:
                    await asyncio.sleep(0)

        async def kill() -> None:
            for count in KILLS_AT:
                await reached[count].wait()
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)

        async with pipeline_on(stage.pool, server.url) as pipeline:
            reading = asyncio.create_task(read(pipeline))
            writers = [write(pipeline, first) for first in range(WRITERS)]
            await asyncio.gather(kill(), *writers)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await drain(pipeline)
        assert sorted(acknowledged) == list(range(EVENTS))
        return await measured_of(stage.pool, lease), failures

    return play(dsn, act)


def test_no_event_is_lost_and_none_counts_twice(database: str, own_nats: NatsServer) -> None:
    """Events that writers repeat until they are acknowledged count once, over two kills."""
    found, failures = counted(database, own_nats)
    assert found == Measured(EVENTS * 1_000, EVENTS)
    assert failures, "the kills were never felt"


def test_the_same_kills_show_a_stream_in_memory(
    database: str, own_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: with streams in memory, acknowledged events are missing after the same kills."""
    monkeypatch.setattr(NatsBus, "storage", StorageType.MEMORY)
    found, _ = counted(database, own_nats, reads=False)
    assert found.events <= EVENTS - KILLS_AT[-1]


def test_a_reader_at_the_end_finds_all(database: str, own_nats: NatsServer) -> None:
    """Proves that the control shows the storage: on file, the same late reader finds all events."""
    found, _ = counted(database, own_nats, reads=False)
    assert found == Measured(EVENTS * 1_000, EVENTS)
