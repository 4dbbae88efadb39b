"""A reader that is killed between effect and progress: nothing is lost, nothing counts twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpucredits.store.billing.usage_events import Measured
from support.engines.nats_server import NatsServer
from support.scenes.metering import measured_of, opened, pipeline_on, use
from support.scenes.scene import Scene, play
from support.servers import usage_reader
from support.waiting import HANGS_S

EVENTS = 30


def read(dsn: str, address: str, reader: str, where: str) -> int:
    """Run a reader of its own process; how it ended."""
    words = [sys.executable, usage_reader.__file__, dsn, address, reader, where]
    return subprocess.run(words, timeout=HANGS_S, check=False).returncode


def counted(dsn: str, address: str, reader: str, where: str) -> Measured:
    """What is counted of the same events after a reader was killed and another went on."""
    assert Path(usage_reader.__file__).exists()

    async def publish(stage: Scene) -> int:
        lease = await opened(stage)
        async with pipeline_on(stage.pool, address) as pipeline:
            for seq in range(EVENTS):
                await pipeline.publish_use(use(lease, [seq]))
        return lease

    lease = play(dsn, publish)
    assert read(dsn, address, reader, where) == -signal.SIGKILL
    assert read(dsn, address, reader, "nowhere") == 0

    async def look(stage: Scene) -> Measured:
        return await measured_of(stage.pool, lease)

    return play(dsn, look, stays_sound=reader == "exact")


@pytest.mark.parametrize("where", ["before_commit", "after_commit"])
def test_each_event_counts_once(database: str, own_nats: NatsServer, where: str) -> None:
    """Effect and progress are one transaction: a kill on either side of its commit is harmless."""
    found = counted(database, own_nats.url, "exact", where)
    assert found == Measured(EVENTS * 1_000, EVENTS)


@pytest.mark.parametrize(
    ("reader", "events"), [("effect_first", 2 * EVENTS), ("progress_first", 0)]
)
def test_the_same_kill_shows_a_reader_without_the_guard(
    database: str, reader: str, events: int
) -> None:
    """Control: with two transactions, the same kill counts every event twice, or none."""
    assert counted(database, "postgres", reader, "between").events == events
