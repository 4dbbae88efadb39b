"""A ledger in which much has happened, and how many rows are read to ask something of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import asyncpg

from gpucredits.core.command import Command, Refund, Reserve, Settle
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import BY_INDEX, PLANNED_ONCE
from gpucredits.store.ledger.orgs import find_org
from support.engines.postgres import TestServer
from support.scenes.gated import until_midnight
from support.scenes.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

ROUNDS = 15
AT_ONCE = 100  # leases of a round
LEASES = ROUNDS * AT_ONCE
FEW_DAYS = 40  # rows: days and accounts of the history, and where its bounds are looked up
FEW = AT_ONCE * 2  # rows: less than two rounds have of leases, or one of entries
READ = """
SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1"""
HOUR_MS = 3_600_000

Ask = Callable[[Connection, int], Awaitable[int]]
Prepare = Callable[[Connection, int], Awaitable[None]]


@dataclass
class History:
    """A ledger in which much has happened, and when."""

    dsn: str = ""
    rounds: list[int] = field(default_factory=list)  # when each began
    over: int = 0
    settled: int = 0  # leases of the first hour
    lapsed: int = 0
    refunded: int = 0


def job(account: str, name: str, node: str = "") -> Reserve:
    """A job for an hour ahead."""
    return Reserve(
        account=account,
        job_id=name,
        gpu_type="h100",
        milli_gpus=1_000,
        window_ms=HOUR_MS,
        node=node,
    )


async def do_all(stage: Scene, commands: list[Command]) -> list[Outcome]:
    """Carry them out together."""
    return await stage.ledger.submit_all(
        "acme", [stage.request(command) for command in commands], atomic=True
    )


async def run_jobs(stage: Scene, jobs: list[Reserve]) -> list[int]:
    """Jobs that run for a minute and end; the numbers of their leases."""
    given = [
        reserved for reserved in await do_all(stage, [*jobs]) if isinstance(reserved, Reserved)
    ]
    assert len(given) == len(jobs)
    numbers = [reserved.reservation.reservation_id for reserved in given]
    await stage.advance(60)
    await do_all(stage, [Settle(reservation_id=number, used_ms=30_000) for number in numbers])
    return numbers


@contextmanager
def long_history(postgres: TestServer, *, midnight_s: float) -> Iterator[History]:
    """Two accounts: one has been idle since the first hour, the other has been busy ever since.

    The first of the rounds begins so long before midnight, or after it if negative.
    """
    told = History()

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/busy", "acme/idle", credits_each=2_000_000)
        old = [job("acme/idle", f"old-{n}", f"shelf-{n}") for n in range(5)]
        await run_jobs(stage, [replace(old[0], metadata={"team": "few"}), *old[1:]])
        [told.settled, told.refunded] = await run_jobs(
            stage, [job("acme/busy", "settled"), job("acme/busy", "refunded")]
        )
        lease = await stage.reserve("acme/busy", job_id="lapsed")
        told.lapsed = lease.reservation.reservation_id
        await stage.advance(4_000)  # the lease lapses, and is written down when others begin
        await until_midnight(stage, before_s=midnight_s)
        for number in range(ROUNDS):
            told.rounds.append((await stage.balance()).as_of)
            await run_jobs(
                stage,
                [
                    job("acme/busy", f"job-{number}-{each}", f"node-{each % 4}")
                    for each in range(AT_ONCE)
                ],
            )
        told.over = (await stage.balance()).as_of
        await stage.do(Refund(reservation_id=told.refunded, amount=CREDIT))
        await do_all(stage, [job("acme/busy", f"live-{each}") for each in range(3)])

    with postgres.database() as told.dsn:
        play(told.dsn, act)
        yield told


async def nothing(connection: Connection, org_id: int) -> None:
    """What most questions need to be there before they are asked."""


async def as_usage_is_read(connection: Connection, org_id: int) -> None:
    """Plan as the service does for usage."""
    del org_id
    await connection.execute(PLANNED_ONCE)


async def count_read(dsn: str, table: str, ask: Ask, prepare: Prepare, *, statistics: bool) -> int:
    """How many rows of a table a question reads, that finds something."""
    connection = await asyncpg.connect(dsn, timeout=HANGS_S, command_timeout=HANGS_S)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(BY_INDEX)
        org_id = await find_org(connection, "acme")
        assert org_id is not None
        await prepare(connection, org_id)
        if statistics:
            await connection.execute("ANALYZE")
        before: int = await connection.fetchval(READ, table)
        assert await ask(connection, org_id), "there is something to find"
        after: int = await connection.fetchval(READ, table)
    finally:
        await transaction.rollback()  # statistics and all
        await connection.close()
    return after - before


def rows_read(history: History, table: str, ask: Ask, prepare: Prepare = nothing) -> int:
    """As many as are read in the worse case, whether the planner has statistics or not."""
    return max(
        asyncio.run(count_read(history.dsn, table, ask, prepare, statistics=statistics))
        for statistics in (False, True)
    )
