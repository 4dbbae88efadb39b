"""A standby takes over: nothing that was lost is taken for true, and no old primary is written to.

Each test has a real primary and a real standby that streams from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

import asyncpg
import pytest

from gpucredits.core.command import Issue
from gpucredits.core.heartbeat import Beat
from gpucredits.service.reads.verify import verify
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.book import changes
from gpucredits.store.database.connections import Notifier, PoolOptions, open_pool
from gpucredits.store.database.durability import UnsafeDatabaseError
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.database.migrate import migrate, read_schema
from gpucredits.store.database.primary import Primary, open_note
from gpucredits.store.embedded.cluster import ROLE
from gpucredits.store.embedded.server import DATABASE
from support.engines.postgres import sql
from support.engines.replicas import Pair, host_of, replicated
from support.scenes.scene import CREDIT, Scene, scene
from support.waiting import until

Found = TypeVar("Found")
SMALL_POOL = PoolOptions(connections_max=6)
pytestmark = pytest.mark.faults
LOST = 3  # saves that the standby never hears of


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A primary with every table, and a standby that lags behind it."""
    with replicated() as made:
        asyncio.run(prepare(made))
        yield made


async def prepare(pair: Pair) -> None:
    """Make the tables."""
    connection = await asyncpg.connect(pair.primary.dsn())
    try:
        await migrate(connection, read_schema())
    finally:
        await connection.close()


async def caught_up(pair: Pair) -> None:
    """Wait until the standby has all that was committed."""
    behind = (
        "SELECT count(*) FROM pg_stat_replication"
        " WHERE replay_lsn IS DISTINCT FROM pg_current_wal_lsn()"
    )
    dsn = pair.primary.dsn()
    await asyncio.to_thread(until, lambda: sql(dsn, behind) == 0, timeout_s=60)


async def lose_commits(pair: Pair) -> list[str]:
    """Lose the last saves of an org in a failover, let another server save as often; what is wrong.

    The server that made the lost saves has the org in memory, and goes on with it in the end.
    """
    async with scene(pair.address(pair.primary, pair.standby), stays_sound=False) as stage:
        await stage.fund("acme", "other", credits_each=10_000)
        lease = await stage.reserve(window_ms=600_000)
        kept = await stage.reserve("other", window_ms=600_000)
        await stage.beat(lease, 1, 1)
        await caught_up(pair)
        await asyncio.to_thread(pair.cut_off_standby)
        for seq in range(2, 2 + LOST):
            await stage.beat(lease, seq, seq)
        await asyncio.to_thread(pair.primary.stop)
        await asyncio.to_thread(pair.promote)
        await reconnected(stage, kept.reservation.reservation_id)
        await save_elsewhere(pair)
        await stage.beat(lease, 10, 10)
        return [finding.rule for finding in (await verify(stage.pool)).findings]


async def reconnected(stage: Scene, reservation_id: int) -> None:
    """Report for another org until somebody answers; the first org stays in memory as it was."""
    org_id = await again(lambda: stage.ledger.org_id("other"))
    assert org_id is not None
    beat = [(org_id, Beat(reservation_id, 1, 1))]
    await again(lambda: stage.ledger.beat(beat))


async def again(attempt: Callable[[], Awaitable[Found]]) -> Found:
    """Try until the database is back."""
    while True:
        try:
            return await attempt()
        except Unavailable:
            await asyncio.sleep(0.05)


async def save_elsewhere(pair: Pair) -> None:
    """Another server changes the org as often as changes of it were lost."""
    pool = await open_pool(pair.standby.dsn(), SMALL_POOL)
    ledger = Ledger(pool)
    try:
        for number in range(LOST):
            command = Issue(account="acme", amount=CREDIT)
            request = Request(command, f"elsewhere-{number}", b"", "tester")
            await ledger.submit("acme", request)
    finally:
        await ledger.stop()
        await pool.close()


def test_what_was_lost_in_a_failover_is_not_taken_for_true(pair: Pair) -> None:
    """A server that remembers commits which the new primary never had decides on what is there."""
    assert asyncio.run(lose_commits(pair)) == []


@pytest.mark.as_source
def test_counted_versions_would_take_it_for_true(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with versions that count, the same story ends with broken books."""
    monkeypatch.setattr(changes, "new_version", lambda known: known + 1)
    assert asyncio.run(lose_commits(pair)) != []


def test_an_old_primary_that_was_not_stopped_is_refused(pair: Pair) -> None:
    """Once the new primary was seen, connections to the old one end and new ones are refused."""

    async def run() -> None:
        primary = Primary()
        old = await open_pool(pair.primary.dsn(), SMALL_POOL, primary)
        assert await old.fetchval("SELECT 1") == 1
        await asyncio.to_thread(pair.promote)
        new = await open_pool(pair.standby.dsn(), SMALL_POOL, primary)
        with pytest.raises(Unavailable, match="old primary"):
            await old.fetchval("SELECT 1")
        assert await new.fetchval("SELECT 1") == 1
        await old.close()
        await new.close()

    asyncio.run(run())


def test_the_newest_primary_is_remembered_over_a_restart(pair: Pair) -> None:
    """A server that starts again refuses the old primary, since it has written down the new one."""
    note = open_note(pair.folders[0].parent / "seen")

    async def look(dsn: str) -> None:
        pool = await open_pool(dsn, SMALL_POOL, Primary(note))
        await pool.close()

    asyncio.run(look(pair.primary.dsn()))
    pair.promote()
    asyncio.run(look(pair.standby.dsn()))
    quick = PoolOptions(connections_max=2, connect_deadline_s=0.2)
    with pytest.raises(Unavailable, match="timeline is 1, and 2 was seen"):
        asyncio.run(open_pool(pair.primary.dsn(), quick, Primary(note)))


def test_while_there_is_no_primary_callers_are_told_to_come_back(pair: Pair) -> None:
    """Both ways of meeting only a standby are an outage for a server that runs, not a defect."""
    way = pair.folders[0].parent / "way"
    way.symlink_to(host_of(pair.primary))
    there = f"postgresql://{ROLE}@/{DATABASE}?host={way}"

    async def run() -> None:
        quick = PoolOptions(connections_max=2, connect_deadline_s=0.2)
        with pytest.raises(Unavailable, match="none of the database's hosts is the primary"):
            await open_pool(pair.address(pair.standby), quick)
        pool = await open_pool(there, SMALL_POOL)
        way.unlink()
        way.symlink_to(host_of(pair.standby))
        await pool.expire_connections()
        with pytest.raises(Unavailable, match="connect to the primary"):
            await pool.fetchval("SELECT 1")
        with pytest.raises(UnsafeDatabaseError, match="connect to the primary"):
            await open_pool(there, SMALL_POOL)
        await asyncio.to_thread(pair.promote)
        assert await pool.fetchval("SELECT 1") == 1
        await pool.close()

    asyncio.run(run())


def test_listeners_come_back_after_a_failover(pair: Pair) -> None:
    """Whoever listens hears what the new primary announces, without a restart."""
    heard: list[str] = []

    async def run() -> None:
        pool = await open_pool(pair.address(pair.primary, pair.standby), SMALL_POOL)
        bell = Notifier(pool, {"news": lambda: heard.append("news")})
        await bell.start()

        def announced(dsn: str, known: int) -> bool:
            sql(dsn, "NOTIFY news")
            return len(heard) >= known + 2  # one comes whenever it begins to listen

        listening = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'LISTEN %'"
        for server in (pair.primary, pair.standby):
            if server is pair.standby:
                await asyncio.to_thread(pair.primary.stop)
                await asyncio.to_thread(pair.promote)
            there = partial(sql, server.dsn(), listening)
            await asyncio.to_thread(until, there, timeout_s=60)
            hears = partial(announced, server.dsn(), len(heard))
            await asyncio.to_thread(until, hears, timeout_s=60)
        await bell.stop()
        await pool.close()

    asyncio.run(run())


def test_with_a_synchronous_standby_nothing_is_lost() -> None:
    """The primary is killed under load: all that was acknowledged is there after the promotion."""
    with replicated(synchronous=True) as pair:
        asyncio.run(prepare(pair))
        acknowledged = asyncio.run(kill_under_load(pair))
        query = "SELECT key FROM idempotency WHERE key LIKE 'load-%'"
        found = asyncio.run(keys(pair.standby.dsn(), query))
        assert acknowledged
        assert acknowledged - found == set()
        assert sql(pair.standby.dsn(), "SELECT NOT pg_is_in_recovery()")


async def keys(dsn: str, query: str) -> set[str]:
    """The keys that are there."""
    connection = await asyncpg.connect(dsn)
    try:
        return {row[0] for row in await connection.fetch(query)}
    finally:
        await connection.close()


async def kill_under_load(pair: Pair) -> set[str]:
    """Write until the primary is killed, promote, and write on; what was acknowledged."""
    acknowledged: set[str] = set()
    async with scene(pair.address(pair.primary, pair.standby)) as stage:
        await stage.fund("acme")

        async def write(number: int) -> None:
            key = f"load-{number}"
            request = Request(Issue(account="acme", amount=1), key, b"", "tester")
            await again(lambda: stage.ledger.submit("acme", request))
            acknowledged.add(key)

        before = [asyncio.create_task(write(number)) for number in range(200)]
        await asyncio.to_thread(until, lambda: len(acknowledged) >= 20, timeout_s=60)
        await asyncio.to_thread(pair.primary.stop)
        await asyncio.to_thread(pair.promote)
        await asyncio.gather(*before)
        await asyncio.gather(*(write(number) for number in range(200, 220)))
    return acknowledged
