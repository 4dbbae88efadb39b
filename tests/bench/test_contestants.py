"""The contestants do the same work, correctly: what they charge is what the formula says."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest
from asyncpg import Connection, Record

from gpucredits.core.heartbeat import Beat
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.clock import advance_clock
from gpucredits.store.database.connections import open_pool
from gpucredits_bench.contestants import books, inprocess, rawcopy, textbook
from gpucredits_bench.workload import Job, Workload, dealt
from support.engines.postgres import TestServer, sql

WORK = Workload(reservations=200, orgs=20)
ROUNDS = ((1, 400), (2, 900), (2, 950), (3, 1_500))  # (seq, used_ms); the third is a repetition
NEVER_US = 2**62
# Of our books, what the textbook is asked for too.
TOTALS = """
SELECT (SELECT sum(spent) FROM accounts)::bigint AS spent,
    (SELECT sum(reserved) FROM accounts)::bigint AS reserved,
    (SELECT sum(settled) FROM reservations)::bigint AS settled,
    (SELECT sum(held) FROM reservations)::bigint AS held,
    (SELECT sum(amount - remaining) FROM grants)::bigint AS granted,
    coalesce((SELECT sum(amount) FROM entries WHERE type = 6), 0)::bigint AS entered
"""


def formula() -> int:
    """What the last accepted report of every job comes to."""
    return sum(job.charge(1_500) for job in WORK.jobs)


async def totals(url: str) -> dict[str, int]:
    """Sums that must be equal, pair by pair."""
    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(TOTALS)
    finally:
        await connection.close()
    return dict(row) if row is not None else {}


def is_balanced(sums: dict[str, int]) -> bool:
    """Whether accounts, reservations, grants and entries say the same."""
    spent = {sums[name] for name in ("spent", "settled", "granted", "entered")}
    return len(spent) == 1 and sums["reserved"] == sums["held"]


async def beat_textbook(dsn: str, beat: textbook.Heartbeat) -> dict[str, int]:
    """Report every round to the textbook on four connections."""
    pool = [await asyncpg.connect(dsn) for _ in range(4)]
    await textbook.create(pool[0], WORK)
    hands = dealt(WORK.shuffled(), len(pool))

    async def drive(connection: Connection[Record], jobs: list[Job]) -> None:
        statements = await textbook.prepare(connection)
        for seq, used_ms in ROUNDS:
            for job in jobs:
                await beat(statements, job.number, seq, used_ms)

    await asyncio.gather(*map(drive, pool, hands))
    sums = await textbook.totals(pool[0])
    for connection in pool:
        await connection.close()
    return sums


async def beat_ours(dsn: str) -> dict[str, int]:
    """Report every round to the ledger."""
    pool = await open_pool(dsn)
    ledger = Ledger(pool)
    running = await inprocess.seed(ledger, WORK)
    await advance_clock(pool, ROUNDS[-1][1] * 1_000)  # so that all use has had its time
    for seq, used_ms in ROUNDS:
        await ledger.beat(
            [(each.org_id, Beat(each.reservation_id, seq, used_ms)) for each in running]
        )
    await ledger.stop()
    await pool.close()
    return await totals(dsn)


@pytest.mark.parametrize("beat", [textbook.heartbeat, textbook.call_heartbeat])
def test_textbook_and_ours_charge_what_the_formula_says(
    postgres: TestServer, database: str, beat: textbook.Heartbeat
) -> None:
    """The same beats, repetitions among them, come to the same totals in both ledgers."""
    sql(postgres.server.dsn("postgres"), "CREATE DATABASE textbook")
    try:
        theirs = asyncio.run(beat_textbook(postgres.server.dsn("textbook"), beat))
    finally:
        sql(postgres.server.dsn("postgres"), "DROP DATABASE textbook WITH (FORCE)")
    ours = asyncio.run(beat_ours(database))
    assert textbook.is_balanced(theirs)
    assert is_balanced(ours)
    assert theirs["spent"] == ours["spent"] == formula()
    assert theirs["held"] == ours["held"]
    assert asyncio.run(books.verify(database)).findings == ()


def test_the_textbook_survives_a_race_for_one_account(postgres: TestServer) -> None:
    """Many connections on one org's jobs: every beat has its effect once, and nothing deadlocks."""
    sql(postgres.server.dsn("postgres"), "CREATE DATABASE race")
    work = Workload(reservations=16, orgs=1)

    async def race(dsn: str) -> dict[str, int]:
        keeper = await asyncpg.connect(dsn)
        await textbook.create(keeper, work)
        opened = [await asyncpg.connect(dsn) for _ in range(8)]
        pool = [await textbook.prepare(connection) for connection in opened]
        clock = textbook.Clock(time.monotonic())
        report = await textbook.run(pool, work.jobs, clock, warm_up_s=0.0, seconds=0.5)
        assert report.beats > 0
        sums = await textbook.totals(keeper)
        for connection in (keeper, *opened):
            await connection.close()
        return sums

    try:
        assert textbook.is_balanced(asyncio.run(race(postgres.server.dsn("race"))))
    finally:
        sql(postgres.server.dsn("postgres"), "DROP DATABASE race WITH (FORCE)")


def test_copy_writes_the_very_rows_in_the_very_commits(database: str) -> None:
    """The raw limit copies every heartbeat's entry, as many to a commit as ours had."""
    asyncio.run(beat_ours(database))
    written = sql(database, "SELECT count(*) FROM entries WHERE type = 6")
    commits = sql(database, "SELECT count(DISTINCT recorded_at) FROM entries WHERE type = 6")
    limit = asyncio.run(rawcopy.measure(database, 0, NEVER_US))
    assert limit.rows == written > 0
    assert limit.rows_per_commit == written / commits
    assert limit.per_second > 0


def test_copied_rows_are_equal_to_the_ledgers(database: str) -> None:
    """Nothing is lost or changed on the way through the binary format."""
    asyncio.run(beat_ours(database))

    async def copy() -> None:
        connection = await asyncpg.connect(database)
        rows = await rawcopy.read_back(connection, 0, NEVER_US)
        await rawcopy.empty_table(connection)
        await rawcopy.copy_all(database, rows, 2)
        await connection.close()

    asyncio.run(copy())
    different = sql(
        database,
        "SELECT count(*) FROM (SELECT * FROM entries WHERE type = 6 "
        "EXCEPT SELECT * FROM entries_copied) AS x",
    )
    assert different == 0


def test_every_size_of_org_and_the_whole_number_of_jobs() -> None:
    """Jobs add up exactly, every org has one, and equal arguments give equal work."""
    work = Workload(reservations=1_003, orgs=37)
    assert sum(work.org_sizes) == len(work.jobs) == 1_003
    assert min(work.org_sizes) >= 1
    assert {job.org for job in work.jobs} == set(range(37))
    assert work.shuffled() == Workload(reservations=1_003, orgs=37).shuffled() != work.jobs
