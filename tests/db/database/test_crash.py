"""The ledger while its database is killed under load: nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import asyncpg

from gpucredits.core.command import Issue
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Granted, Reserved
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.database.migrate import migrate, read_schema
from gpucredits.store.embedded import leftovers
from gpucredits.store.embedded.server import EmbeddedPostgres
from gpucredits.store.ledger.reservations import ReservationFilter
from support.engines.postgres import SMALL
from support.scenes.scene import CREDIT, Scene, scene
from support.waiting import HANGS_S, until

KILLS = 3
ACKNOWLEDGED_BETWEEN = 40  # so many writes are acknowledged before each kill


class Load:
    """Writers that never give up: each asks again with the same key until it is answered."""

    def __init__(self, stage: Scene) -> None:
        self.stage = stage
        self.granted: dict[str, Granted] = {}
        self.settled: dict[int, int] = {}
        self.interrupted = 0
        self.is_over = False
        self.moved = asyncio.Event()

    @property
    def acknowledged(self) -> int:
        """How many writes were answered."""
        return len(self.granted) + sum(self.settled.values()) // CREDIT

    async def issue(self, writer: int) -> None:
        """Issue one credit after the other."""
        number = 0
        while not self.is_over:
            key = f"{writer}-{number}"
            try:
                outcome = await self.stage.do(Issue(account="acme", amount=CREDIT), key=key)
            except Unavailable:
                self.interrupted += 1
                await asyncio.sleep(0.01)
                continue
            assert isinstance(outcome, Granted)
            self.granted[key] = outcome
            self.moved.set()
            number += 1

    async def beat(self, lease: Reserved) -> None:
        """Report a second of use after the other."""
        org_id = await self.stage.ledger.org_id("acme")
        assert org_id is not None
        seq = 1
        while not self.is_over:
            beat = Beat(lease.reservation.reservation_id, seq, 1_000 * seq)
            [answer] = await self.stage.ledger.beat([(org_id, beat)])
            if isinstance(answer, Unavailable):
                self.interrupted += 1
                await asyncio.sleep(0.01)
                continue
            assert isinstance(answer, BeatResult), answer
            assert answer.settled >= seq * CREDIT
            self.settled[lease.reservation.reservation_id] = answer.settled
            self.moved.set()
            seq += 1


def kill(server: EmbeddedPostgres, cluster: Path) -> None:
    """Kill every process of the server, and wait until it serves again."""
    restarts = server.restarts
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)  # so that it cannot help the others to end
    for pid in leftovers.server_processes(cluster):
        os.kill(pid, signal.SIGKILL)
    until(lambda: server.restarts > restarts, timeout_s=HANGS_S)


async def wreck(stage: Scene, server: EmbeddedPostgres, cluster: Path) -> Load:
    """Load and kills together, then let every writer finish."""
    await stage.fund("acme", credits_each=100_000)
    leases = [await stage.reserve(window_ms=3_600_000, job_id=f"j{n}") for n in range(4)]
    await stage.advance(3_000)  # so that use can be reported faster than time passes
    load = Load(stage)
    writers = [
        *(asyncio.create_task(load.issue(writer)) for writer in range(4)),
        *(asyncio.create_task(load.beat(lease)) for lease in leases),
    ]
    for _ in range(KILLS):
        enough = load.acknowledged + ACKNOWLEDGED_BETWEEN
        await asyncio.wait_for(reached(load, enough), HANGS_S)
        await asyncio.to_thread(kill, server, cluster)
    await asyncio.wait_for(reached(load, load.acknowledged + ACKNOWLEDGED_BETWEEN), HANGS_S)
    load.is_over = True
    await asyncio.gather(*writers)
    return load


async def reached(load: Load, enough: int) -> None:
    """Wait until so many writes are acknowledged."""
    while load.acknowledged < enough:
        load.moved.clear()
        await load.moved.wait()


def test_acknowledged_writes_survive_kills_under_load(data_dir: Path) -> None:
    """After every kill -9 each acknowledged write is there once, and retries complete."""

    async def run(server: EmbeddedPostgres) -> None:
        connection = await asyncpg.connect(server.dsn())
        await migrate(connection, read_schema())
        await connection.close()
        async with scene(server.dsn()) as stage:
            load = await wreck(stage, server, data_dir / "postgres")
            assert server.restarts == KILLS
            assert load.interrupted
            grants = await stage.pool.fetch("SELECT grant_id FROM grants WHERE amount = $1", CREDIT)
            stored = sorted(row["grant_id"] for row in grants)
            assert stored == sorted(each.grant.grant_id for each in load.granted.values())
            leases = await stage.reads.reservations("acme", ReservationFilter())
            assert {lease.reservation_id: lease.settled for lease, _ in leases} == load.settled

    with EmbeddedPostgres(data_dir, settings=SMALL) as server:
        asyncio.run(run(server))
