"""Two servers on one database: never over capacity, and either may die at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from gpucredits.client import AsyncClient, Refused, Retry
from gpucredits.wire.dispatch.queue import QueueAnswer
from support.engines.postgres import sql, temporary_directory
from support.scenes.pools import PoolScene
from support.servers.http import Caller, RunningServer, fresh_name, running_server
from support.waiting import HANGS_S, until

CAPACITY = 8
CALLERS = 64
HOLDER = "SELECT holder FROM pool_dispatch d JOIN pools p USING (pool_id) WHERE gpu_type = $1"
PATIENT = Retry(deadline_s=HANGS_S, attempts_max=100)


@pytest.fixture
def replicas(database: str) -> Iterator[list[RunningServer]]:
    """Two servers; the first administrator's key works on both."""
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_directory())
        started: list[RunningServer] = []
        for number in range(2):
            home = folder / str(number)
            home.mkdir()
            if started:
                (home / "admin.key").write_text(started[0].admin_secret)
                (home / "admin.key").chmod(0o600)
            options = ("--database-url", database)
            started.append(stack.enter_context(running_server(home, *options)))
        yield started


@pytest.fixture
def scene(replicas: list[RunningServer]) -> Iterator[PoolScene]:
    """A pool, set on the first server."""
    with httpx.Client(base_url=replicas[0].url, timeout=HANGS_S) as http:
        admin = Caller(http, replicas[0].admin_secret)
        gpu_type = fresh_name("gpu-")
        admin.made("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": "36"})
        yield PoolScene(admin, gpu_type, capacity=CAPACITY)


def held(dsn: str, gpu_type: str) -> int:
    """GPUs of live leases, as the database has them."""
    query = (
        "SELECT coalesce(sum(milli_gpus) / 1000, 0)::bigint FROM reservations"
        " WHERE gpu_type = $1 AND state = 0"
    )
    return int(sql(dsn, query, gpu_type))


def test_64_callers_on_two_servers_never_overbook(
    replicas: list[RunningServer], scene: PoolScene, database: str
) -> None:
    """Plain reserves at both doors at once: exactly as many get in as there are GPUs."""
    orgs = [scene.org() for _ in range(4)]

    async def ask(client: AsyncClient, number: int) -> str:
        try:
            lease = await client.reserve(
                orgs[number % 4], job_id=f"j{number}", gpu_type=scene.gpu_type
            )
        except Refused as refused:
            return refused.reason
        return lease.reservation_id

    async def round_of() -> list[str]:
        secret = replicas[0].admin_secret
        async with (
            AsyncClient(replicas[0].url, secret, retry=PATIENT) as one,
            AsyncClient(replicas[1].url, secret, retry=PATIENT) as two,
        ):
            calls = (ask((one, two)[number % 2], number) for number in range(CALLERS))
            return list(await asyncio.gather(*calls))

    for _ in range(2):
        ends = asyncio.run(round_of())
        admitted = [end for end in ends if end != "fair_share"]
        assert len(admitted) == CAPACITY
        assert held(database, scene.gpu_type) == CAPACITY
        for lease in admitted:
            scene.settle(lease)


def test_killing_the_dispatcher_loses_and_doubles_nothing(
    replicas: list[RunningServer], scene: PoolScene, database: str
) -> None:
    """The server that dispatches is killed in the midst of it: the other one goes on."""
    dsn, gpu_type = database, scene.gpu_type
    org = scene.org()
    secret = replicas[0].admin_secret

    async def ask(client: AsyncClient, number: int) -> QueueAnswer:
        return await client.enqueue(org, job_id=f"j{number}", gpu_type=gpu_type, key=f"q{number}")

    async def enqueue_all(url: str) -> list[QueueAnswer]:
        async with AsyncClient(url, secret, retry=PATIENT) as client:
            return list(await asyncio.gather(*(ask(client, number) for number in range(CALLERS))))

    lease = scene.take(org, CAPACITY)
    queued = asyncio.run(enqueue_all(replicas[0].url))
    assert len({each.queue_id for each in queued}) == CALLERS
    scene.settle(lease)
    holder = until(lambda: sql(dsn, HOLDER, gpu_type))
    by_pid = {str(each.serving_pid): each for each in replicas}
    victim = by_pid.pop(holder.partition("-")[0])
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait(HANGS_S)
    [survivor] = by_pid.values()
    with httpx.Client(base_url=survivor.url, timeout=HANGS_S) as http:
        admin = Caller(http, secret)
        seen: set[str] = set()

        def newly_admitted() -> set[str]:
            page = admin.read(f"/v1/queue?account={org}&state=admitted&limit=1000")
            return {row["reservation_id"] for row in page["queue"]} - seen

        while len(seen) < CALLERS + 1:
            leases = until(newly_admitted, timeout_s=HANGS_S)
            assert held(dsn, gpu_type) <= CAPACITY
            seen |= leases
            for each in leases:
                admin.post(f"/v1/reservations/{each}:settle")
    assert sql(dsn, "SELECT count(*) FROM reservations WHERE gpu_type = $1", gpu_type) == len(seen)
    taken_over = until(lambda: sql(dsn, HOLDER, gpu_type))
    assert taken_over.startswith(f"{survivor.serving_pid}-")
