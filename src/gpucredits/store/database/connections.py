"""Connections to the database: how many, with which session settings, and how long to try.

Owns: making a pool and lending its connections; on a connection, a transaction, reading everything
of one moment, and hearing at once what other processes have committed.
Must not: run a query of the business, or retry a transaction; whoever called it knows what may be
run again.

Every new connection is checked for durability, not just the first: after a failover the same
address may lead to a server with other settings, to one that is still read-only, or to an old
primary.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import asyncpg

from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.durability import UnsafeDatabaseError, require_durable
from gpucredits.store.database.errors import (
    DRIVER_ERRORS,
    Unavailable,
    driver_errors,
    raise_ours,
    translated,
)
from gpucredits.store.database.primary import DatabaseAddressError, Primary, require_primary
from gpucredits.store.embedded import private

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 20
# Reads go by an index: what looks small to the planner may have grown since it last looked.
BY_INDEX = "SET LOCAL enable_seqscan = off"
# For long queries whose plan is the same whatever is asked: planning costs as much as they do.
PLANNED_ONCE = f"{BY_INDEX}; SET LOCAL plan_cache_mode = force_generic_plan"
BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 2.0
LISTEN_RETRY_S = 1.0
Ring = Callable[[], None]
NOT_LET_IN = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """Bounds of a pool and of each session in it."""

    connections_min: int = 1
    connections_max: int = 10
    connect_timeout_s: float = 5.0
    connect_deadline_s: float = 60.0
    statement_timeout_ms: int = 30_000
    lock_timeout_ms: int = 10_000
    idle_in_transaction_timeout_ms: int = 30_000
    # Longer than the server's own, so that the server's clearer error comes first.
    command_timeout_s: float = 35.0
    application_name: str = "gpucredits"
    allow_no_checksums: bool = False

    def session_settings(self) -> dict[str, str]:
        """What every session is opened with."""
        return {
            "application_name": self.application_name,
            "timezone": "UTC",
            "jit": "off",
            "statement_timeout": f"{self.statement_timeout_ms}ms",
            "lock_timeout": f"{self.lock_timeout_ms}ms",
            "idle_in_transaction_session_timeout": f"{self.idle_in_transaction_timeout_ms}ms",
        }


DEFAULTS = PoolOptions()


@asynccontextmanager
async def session(pool: Pool) -> AsyncIterator[Connection]:
    """A connection of the pool for the length of a block, with our exceptions for the driver's."""
    try:
        async with pool.acquire() as db:
            yield db
    except DRIVER_ERRORS as error:
        raise_ours(error)


async def close_lane(pool: Pool, lent: Connection) -> None:
    """Let go of a connection, whatever state it is in."""
    with suppress(*DRIVER_ERRORS):
        lent.terminate()
    with suppress(*DRIVER_ERRORS):
        await pool.release(lent)


async def open_pool(
    dsn: str, options: PoolOptions = DEFAULTS, primary: Primary | None = None
) -> Pool:
    """A pool with at least one working connection, trying until the deadline.

    Raises ``Unavailable`` at the deadline, and at once whatever waiting would not cure: a wrong
    password, an unknown database, a file or socket that this user cannot reach
    (``DatabaseAddressError``), settings that void durability.
    """
    require_primary(dsn)
    primary = primary or Primary()
    deadline = time.monotonic() + options.connect_deadline_s
    delay_s = RETRY_FIRST_S
    while True:
        try:
            return await try_open(dsn, options, primary)
        except Unavailable as error:
            if isinstance(error.__cause__, PermissionError):
                raise not_let_in(error.__cause__) from error
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise Unavailable(
                    f"no database within {options.connect_deadline_s:g} s: {error}"
                ) from error
        except NOT_LET_IN as error:
            raise not_let_in(error) from error
        # Jitter only spreads the replicas' attempts; nothing depends on its quality.
        await asyncio.sleep(min(left_s, delay_s * random.uniform(0.5, 1.0)))  # noqa: S311
        delay_s = min(delay_s * 2, RETRY_MAX_S)


def not_let_in(error: Exception) -> DatabaseAddressError:
    """What to do where the database, or the way to it, is closed to us."""
    user = private.user_name(os.geteuid())
    return DatabaseAddressError(
        f"user {user} cannot open the database: {error}. Check role, password and database name "
        f"in --database-url, and that user {user} can read the files which the address names"
    )


async def try_open(dsn: str, options: PoolOptions, primary: Primary) -> Pool:
    """Open the pool once, with our exceptions for the driver's.

    A standby is refused at the start; a server that is running waits until it is the primary.
    """
    is_running = False

    async def check(connection: Connection) -> None:
        try:
            await require_durable(connection, allow_no_checksums=options.allow_no_checksums)
        except UnsafeDatabaseError as error:
            if is_running and error.is_standby:
                raise Unavailable(str(error)) from error
            raise
        await primary.admit(connection)

    with driver_errors():
        pool = await asyncpg.create_pool(
            dsn,
            min_size=options.connections_min,
            max_size=options.connections_max,
            timeout=options.connect_timeout_s,
            command_timeout=options.command_timeout_s,
            server_settings=options.session_settings(),
            init=check,
            max_cacheable_statement_size=0,  # no bound: the longest ones are the dearest to plan
        )
    is_running = True
    return pool


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncIterator[None]:
    """Commit what the block did, or roll it back when it raises.

    Raises ``Unavailable`` when the connection was lost: also during the commit, whose result is
    then unknown.
    """
    with driver_errors():
        await connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(*DRIVER_ERRORS):
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")


@asynccontextmanager
async def snapshot(
    pool: Pool, *, timeout_s: float = 10.0, planned: str = BY_INDEX
) -> AsyncIterator[Connection]:
    """A connection on which everything that is read is of one moment; raises Unavailable.

    ``planned``: BY_INDEX or PLANNED_ONCE.
    """
    connection = await begin(pool, f"{BEGIN}; {planned}", timeout_s=timeout_s)
    try:
        try:
            yield connection
        finally:
            with suppress(*DRIVER_ERRORS):
                await connection.execute("ROLLBACK")
            await pool.release(connection)
    except DRIVER_ERRORS as error:
        raise_ours(error)


async def begin(pool: Pool, text: str, *, timeout_s: float) -> Connection:
    """A connection with a transaction open on it, which ``text`` has begun.

    After the database has restarted a pool is full of dead connections; nothing has been read when
    that shows, so the next one is tried.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            connection = await pool.acquire(timeout=timeout_s)
        except DRIVER_ERRORS as error:
            raise_ours(error)
        try:
            await connection.execute(text)
        except BaseException as error:
            await close_lane(pool, connection)
            ours = translated(error)
            if ours is None:
                raise
            if not isinstance(ours, Unavailable) or attempt == ATTEMPTS_MAX:
                raise ours from error
        else:
            return connection
    raise AssertionError("the last attempt returns or raises")


class Notifier:
    """Calls a function for every announcement on its channel, as long as it runs.

    Nothing depends on hearing: whoever listens also looks now and then, so an announcement that is
    lost costs time and nothing else.
    """

    def __init__(self, pool: Pool, rings: Mapping[str, Ring]) -> None:
        self._pool = pool
        self._rings = rings
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)

    async def stop(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except (*DRIVER_ERRORS, TimeoutError, Unavailable, UnsafeDatabaseError) as error:
                logger.info("the notifier listens again soon: %s", error)
            await asyncio.sleep(LISTEN_RETRY_S)

    async def _listen(self) -> None:
        """Listen until the connection is gone."""
        gone = asyncio.Event()
        connection = await self._pool.acquire(timeout=5.0)

        def heard(_: Connection, __: int, channel: str, ___: Any) -> None:
            self._rings[channel]()

        try:
            connection.add_termination_listener(lambda _: gone.set())
            for channel in self._rings:
                await connection.add_listener(channel, heard)
            for ring in self._rings.values():  # what was announced before is not heard again
                ring()
            await gone.wait()
        finally:
            await close_lane(self._pool, connection)
