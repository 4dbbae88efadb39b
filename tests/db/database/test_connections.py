"""The pool: what every session is set to, how long it tries, and which errors callers see."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import asyncpg
import pytest

from gpucredits.store.database.connections import PoolOptions, open_pool
from gpucredits.store.database.durability import UnsafeDatabaseError
from gpucredits.store.database.errors import (
    Conflict,
    Locked,
    Unavailable,
    driver_errors,
    translated,
)
from gpucredits.store.database.primary import DatabaseAddressError, require_primary
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import SMALL, TestServer, sql
from support.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

QUICK = PoolOptions(connect_deadline_s=0.3, connect_timeout_s=0.2)


def test_every_session_is_bounded_and_in_utc(database: str) -> None:
    """Proves that no statement, lock or open transaction of ours can last for ever."""
    wanted = {
        "statement_timeout": "30s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "30s",
        "application_name": "gpucredits",
        "TimeZone": "UTC",
        "jit": "off",
    }

    async def run() -> dict[str, str]:
        async with await open_pool(database) as pool:
            query = "SELECT current_setting($1)"
            return {name: await pool.fetchval(query, name) for name in wanted}

    assert asyncio.run(run()) == wanted


def test_long_statements_are_planned_once(database: str) -> None:
    """A batch of many kinds of changes is a statement of more bytes than the driver keeps."""
    text = f"SELECT '{'a' * 40_000}' = $1::text"
    count = "SELECT count(*) FROM pg_prepared_statements WHERE length(statement) > 40000"

    async def run() -> int:
        async with await open_pool(database) as pool, pool.acquire() as connection:
            for _ in range(3):
                await connection.fetchval(text, "a")
            found: int = await connection.fetchval(count)
            return found

    assert asyncio.run(run()) == 1


def test_unreachable_database_ends_in_unavailable_at_the_deadline(data_dir: Path) -> None:
    """Proves that connecting is tried again, but not for ever."""
    with pytest.raises(Unavailable, match=r"no database within 0\.3 s"):
        asyncio.run(open_pool(f"postgresql://somebody@/nothing?host={data_dir}", QUICK))


def test_pool_waits_for_a_server_that_starts_later(made_dir: Path) -> None:
    """Proves that the order in which the two are started does not matter."""
    server = EmbeddedPostgres(made_dir, settings=SMALL)
    with server:
        dsn = server.dsn()

    async def run() -> int:
        opening = asyncio.create_task(open_pool(dsn))
        await asyncio.sleep(0)
        await asyncio.to_thread(server.start)
        async with await opening as pool:
            value: int = await pool.fetchval("SELECT 1")
            return value

    try:
        assert asyncio.run(run()) == 1
    finally:
        server.stop()


def test_mistakes_that_waiting_does_not_cure_pass_at_once(postgres: TestServer) -> None:
    """Proves that an unknown database is reported as such and not retried to the deadline."""
    with pytest.raises(DatabaseAddressError, match='"absent" does not exist'):
        asyncio.run(open_pool(postgres.server.dsn("absent")))


def test_unsafe_database_is_refused_by_every_connection(database: str) -> None:
    """Proves that durability is checked when a connection is made, not only at the first start."""
    name = database.split("@/", 1)[1].split("?", 1)[0]

    async def run() -> None:
        async with await open_pool(database) as pool:
            await pool.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
            await pool.expire_connections()
            await pool.fetchval("SELECT 1")

    with pytest.raises(UnsafeDatabaseError, match="synchronous_commit"):
        asyncio.run(run())


def test_pool_outlives_a_killed_server(made_dir: Path) -> None:
    """Proves that callers see Unavailable while the server is away, and then work again."""

    async def run(server: EmbeddedPostgres) -> list[str]:
        seen = []
        async with await open_pool(server.dsn()) as pool, asyncio.timeout(HANGS_S):
            before = server.pid
            assert before is not None
            async with pool.acquire() as connection:
                os.kill(before, signal.SIGKILL)
                await until_gone(connection)
            while "served" not in seen:
                try:
                    with driver_errors():
                        await pool.fetchval("SELECT 1", timeout=5)
                    seen.append("served")
                except Unavailable:
                    seen.append("unavailable")
                    await asyncio.sleep(0.02)
        return seen

    with EmbeddedPostgres(made_dir, settings=SMALL) as server:
        seen = asyncio.run(run(server))
    assert seen[0] == "unavailable"
    assert seen[-1] == "served"


async def until_gone(connection: asyncpg.pool.PoolConnectionProxy[asyncpg.Record]) -> None:
    """Use a connection until the server's end shows, which must come as Unavailable."""
    try:
        with driver_errors():
            while True:
                await connection.fetchval("SELECT pg_sleep(0.01)")
    except Unavailable:
        return


async def provoke(dsn: str, first: str, second: str, *, isolation: str) -> None:
    """Two sessions update the rows 1 and 2 in the given orders, each holding what it has."""
    one, two = [await asyncpg.connect(dsn, timeout=HANGS_S) for _ in range(2)]
    update = "UPDATE money SET n = n + 1 WHERE id = ANY($1)"
    try:
        for session, row in ((one, first[0]), (two, second[0])):
            await session.execute("SET deadlock_timeout = '20ms'")
            await session.execute(f"BEGIN ISOLATION LEVEL {isolation}")
            await session.fetchval("SELECT sum(n) FROM money")
            if row != "-":
                await session.execute(update, [int(row)])
        waiting = asyncio.create_task(two.execute(update, [int(second[1])]))
        try:
            with driver_errors():
                if first[1] != "-":
                    await one.execute(update, [int(first[1])])
                await one.execute("COMMIT")
                await waiting
        finally:
            await asyncio.gather(waiting, return_exceptions=True)
    finally:
        one.terminate()
        two.terminate()


@pytest.mark.parametrize(
    ("first", "second", "isolation", "said"),
    [
        ("12", "21", "READ COMMITTED", "40P01"),
        ("1-", "-1", "REPEATABLE READ", "40001"),
    ],
    ids=["deadlock", "serialization failure"],
)
def test_conflicts_with_other_transactions_are_conflicts(
    database: str, first: str, second: str, isolation: str, said: str
) -> None:
    """Proves that what another run would cure is told apart from everything else."""
    sql(database, "CREATE TABLE money AS SELECT id, 0 AS n FROM generate_series(1, 2) AS id")
    with pytest.raises(Conflict, match=said):
        asyncio.run(provoke(database, first, second, isolation=isolation))


def test_terminated_session_and_timed_out_statement_are_unavailable(database: str) -> None:
    """Proves that a session ended by the operator or by its bound asks for a later retry."""

    async def run(*statements: str) -> None:
        async with await open_pool(database) as pool, pool.acquire() as connection:
            with driver_errors():
                for statement in statements:
                    await connection.execute(statement)

    with pytest.raises(Unavailable, match="administrator command"):
        asyncio.run(run("SELECT pg_terminate_backend(pg_backend_pid())"))
    with pytest.raises(Unavailable, match="57014"):
        asyncio.run(run("SET statement_timeout = '50ms'", "SELECT pg_sleep(60)"))


def test_defects_of_ours_pass_untouched(database: str) -> None:
    """Proves that a broken statement or a violated constraint is never dressed up as an outage."""

    async def run() -> None:
        async with await open_pool(database) as pool:
            with driver_errors():
                await pool.execute("SELECT 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (asyncpg.TooManyConnectionsError("sorry, too many clients already"), Unavailable),
        (asyncpg.CannotConnectNowError("the database system is starting up"), Unavailable),
        (asyncpg.DiskFullError("No space left on device"), Unavailable),
        (asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT"), Unavailable),
        (asyncpg.ConnectionDoesNotExistError("connection was closed"), Unavailable),
        (asyncpg.InterfaceError("connection is closed"), Unavailable),
        (asyncpg.InternalClientError("cannot switch to state 12; another (2)"), Unavailable),
        (asyncpg.InternalClientError("got result for unknown state"), type(None)),
        (ConnectionResetError(104, "reset by peer"), Unavailable),
        (TimeoutError(), Unavailable),
        (asyncpg.LockNotAvailableError("canceling statement due to lock timeout"), Locked),
        (asyncpg.DeadlockDetectedError("deadlock detected"), Conflict),
        (asyncpg.UniqueViolationError("duplicate key"), type(None)),
        (asyncpg.InterfaceError("the server expects 1 argument"), type(None)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_errors_of_the_driver_have_one_meaning_each(error: Exception, ours: type) -> None:
    """Proves the table of translations, also for what is hard to provoke."""
    assert type(translated(error)) is ours


def test_several_hosts_need_to_ask_for_the_primary() -> None:
    """An address that any of its hosts may answer is refused, and the error says what to add."""
    require_primary("postgresql://me@one/db")
    require_primary("postgresql://me@one,two/db?target_session_attrs=primary")
    require_primary("postgresql://me@/db?host=/one,/two&target_session_attrs=read-write")
    for address in ("postgresql://me@one,two:5433/db", "postgresql://me@/db?host=/one,/two"):
        with pytest.raises(DatabaseAddressError, match="target_session_attrs=primary"):
            require_primary(address)
