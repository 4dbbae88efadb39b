"""Many callers at one account and around a ring, and controls that must fail."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import asyncpg
import pytest

from gpucredits.client import AsyncClient, Call, Client, Retry
from gpucredits.client.calls import reserve, transfer
from support.engines.postgres import TestServer
from support.faults.extent import Extent, Teller
from support.scenes.orgs import GPU_TYPE, new_org
from support.servers.http import RunningServer, reason_of

pytestmark = pytest.mark.faults

CALLERS = 64
FUNDED = 7
WRITERS = 32
RING = 8
CONTROL_CALLERS = 16
CONTROL_ROUNDS_MAX = 20
PATIENT = Retry(attempt_timeout_s=60.0, deadline_s=90.0)


async def together(server: RunningServer, calls: list[Call[Any]]) -> Counter[str]:
    """All calls at once, and how they ended."""
    async with AsyncClient(server.url, server.admin_secret, retry=PATIENT) as client:
        return Counter(await asyncio.gather(*(reason_of(client, call) for call in calls)))


def test_exactly_as_many_are_admitted_as_are_funded(
    server: RunningServer, direct: Client, extent: Extent, tell: Teller
) -> None:
    """64 callers at an account that pays for 7 leases: 7 are admitted, in every round."""
    exact = refused = negative = 0
    for number in range(extent.cycles):
        org = new_org(direct)
        payer = org if number % 2 else f"{org}/new"  # every other one was opened just before
        if payer != org:
            direct.create_account(payer)
        direct.issue(payer, str(10 * FUNDED + 9))
        calls = [
            reserve(payer, job_id=f"j{each}", gpu_type=GPU_TYPE, window_seconds=10)
            for each in range(CALLERS)
        ]
        ends = asyncio.run(together(server, calls))
        assert ends.keys() <= {"", "insufficient_credits"}
        balance = direct.balance(payer)
        exact += ends[""] == FUNDED and (balance.available, balance.reserved) == ("9", "70")
        negative += balance.available.startswith("-")
        refused += ends["insufficient_credits"]
    tell(
        "concurrent spend",
        f"{CALLERS} callers, exactly {FUNDED} admitted in {exact} of {extent.cycles} rounds, "
        f"negative balances {negative}",
        holds=exact == extent.cycles,
        refused=refused,
    )
    assert (exact, negative) == (extent.cycles, 0)


def test_check_then_act_without_a_lock_overspends(database: str, tell: Teller) -> None:
    """Control: the same race on plain SQL without a lock admits more than are funded."""

    async def spend(connection: asyncpg.Connection[Any]) -> bool:
        async with connection.transaction():
            if await connection.fetchval("SELECT credits FROM wallet") < 1:
                return False
            await connection.execute("UPDATE wallet SET credits = credits - 1")
            return True

    async def run() -> int:
        connections = [await asyncpg.connect(database) for _ in range(CONTROL_CALLERS)]
        try:
            first = connections[0]
            await first.execute("CREATE TABLE wallet AS SELECT 0 AS credits")
            overspent = 0
            for _ in range(CONTROL_ROUNDS_MAX):
                await first.execute("UPDATE wallet SET credits = $1", FUNDED)
                admitted = sum(await asyncio.gather(*map(spend, connections)))
                overspent += admitted > FUNDED
            return overspent
        finally:
            for connection in connections:
                await connection.close()

    tell(
        "concurrent spend, control: no lock",
        f"of {CONTROL_ROUNDS_MAX} rounds",
        rounds_overspent=asyncio.run(run()),
    )


def test_a_ring_of_transfers_in_both_directions_keeps_the_total(
    server: RunningServer, direct: Client, postgres: TestServer, extent: Extent, tell: Teller
) -> None:
    """32 writers push credits around a ring both ways: lack of credits is the only refusal."""
    org = new_org(direct)
    paths = [f"{org}/r{number}" for number in range(RING)]
    for path in paths:
        direct.create_account(path)
        direct.issue(path, "10")
    before = asyncio.run(deadlocks(postgres))
    began = time.monotonic()
    ends: Counter[str] = Counter()
    for number in range(extent.cycles):
        calls = []
        for writer in range(WRITERS):
            step = 1 if writer % 2 else -1
            for hop in range(RING):
                place = (writer + number + step * hop) % RING
                calls.append(transfer(paths[place], paths[(place + step) % RING], "3.5"))
        ends += asyncio.run(together(server, calls))
    took = time.monotonic() - began
    found = asyncio.run(deadlocks(postgres)) - before
    total = direct.balance(org, tree=True).available
    tell(
        "ring of transfers",
        f"{WRITERS} writers, {ends.total()} transfers, deadlocks {found}, "
        f"total {total} of {10 * RING}, took {took:.0f} s",
        holds=(found, total) == (0, str(10 * RING)),
        moved=ends[""],
    )
    assert ends.keys() <= {"", "insufficient_credits"}
    assert (found, total) == (0, str(10 * RING))


async def deadlocks(postgres: TestServer) -> int:
    """How many deadlocks the whole server has seen."""
    connection = await asyncpg.connect(postgres.server.dsn("postgres"))
    try:
        return int(await connection.fetchval("SELECT sum(deadlocks) FROM pg_stat_database"))
    finally:
        await connection.close()


def test_locks_in_opposite_orders_deadlock(database: str, tell: Teller) -> None:
    """Control: two writers that lock the same two rows in opposite orders end in a deadlock."""

    async def move(
        connection: asyncpg.Connection[Any], first: int, second: int, meet: asyncio.Barrier
    ) -> int:
        lock = "UPDATE wallet SET credits = credits WHERE id = $1"
        try:
            async with connection.transaction():
                await connection.execute(lock, first)
                await meet.wait()
                await connection.execute(lock, second)
        except asyncpg.DeadlockDetectedError:
            return 1
        return 0

    async def run() -> int:
        one, other = [await asyncpg.connect(database) for _ in range(2)]
        try:
            await one.execute(
                "CREATE TABLE wallet AS SELECT 1 AS id, 5 AS credits UNION SELECT 2, 5"
            )
            meet = asyncio.Barrier(2)
            both: list[Coroutine[Any, Any, int]] = [
                move(one, 1, 2, meet),
                move(other, 2, 1, meet),
            ]
            return sum(await asyncio.gather(*both))
        finally:
            await one.close()
            await other.close()

    tell("ring of transfers, control: opposite orders", "", deadlocks=asyncio.run(run()))
