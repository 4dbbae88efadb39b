"""The composition root: a database, the service on top of it, and the API in front.

Owns: the order in which the parts start and stop, and the one configuration they share.
Must not: do anything that a part could do.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpucredits.api.asgi import Api
from gpucredits.api.connections import CONNECTIONS_MAX, PER_ADDRESS_MAX
from gpucredits.api.routes import routes
from gpucredits.core.bounds import LEASE_MAX_MS_DEFAULT
from gpucredits.core.request_limit import Defaults
from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.anomalies import Anomalies
from gpucredits.jobs.bucket_saver import BucketSaver
from gpucredits.jobs.clock_watcher import ClockWatcher
from gpucredits.jobs.dispatcher import Dispatching
from gpucredits.jobs.requests import Requests
from gpucredits.jobs.retention import Retention
from gpucredits.jobs.sealer import Sealer
from gpucredits.jobs.snapshotter import Snapshotter
from gpucredits.jobs.statements import Statements
from gpucredits.jobs.statistician import Statistician
from gpucredits.jobs.sweeper import Sweeper
from gpucredits.service.bucket_levels import Levels
from gpucredits.service.funnel import FunnelOptions
from gpucredits.service.keys import Keyring, ensure_admin_key
from gpucredits.service.ledger import Ledger
from gpucredits.service.limiter import Limiter, ProcessLimiter
from gpucredits.service.orgs import Directory
from gpucredits.service.pools import GpuPools
from gpucredits.service.queue import Line
from gpucredits.service.reads import Reads
from gpucredits.service.services import Services
from gpucredits.store import pools, private, queue
from gpucredits.store.bell import Bell
from gpucredits.store.clock import read_offset
from gpucredits.store.cluster import Layout
from gpucredits.store.connection import Pool
from gpucredits.store.embedded import EmbeddedPostgres, make_data_dir
from gpucredits.store.migrate import migrate, read_migrations
from gpucredits.store.pool import PoolOptions, open_pool
from gpucredits.store.primary import Primary, open_note, socket_directory
from gpucredits.store.run_as import RunAs, sealed_advice, serving_advice, serving_user
from gpucredits.store.shelf import LEASES_MAX

logger = logging.getLogger(__name__)

ADMIN_KEY_FILE: Final = "admin.key"
PRIMARY_FILE: Final = "primary.seen"
POOL = PoolOptions(connections_min=2, connections_max=16)
PREPARING = PoolOptions(connections_min=1, connections_max=2)


class ClockMovedError(Exception):
    """The database's time was moved by a test server; it must not be mistaken for real time."""


class RedisSetupError(Exception):
    """Request limits are to be shared through Redis, and what was given cannot do it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be set."""

    data_dir: Path
    database_url: str | None = None
    # A process of root has prepared the database, and has the data directory; it lends a
    # descriptor of the file in which the newest primary is noted.
    is_apart: bool = False
    primary_note: int | None = None
    host: str = "127.0.0.1"
    port: int = 8437
    test_clock: bool = False
    request_limits: Defaults = field(default_factory=Defaults)
    redis_url: str | None = field(default=None, repr=False)  # it may hold a password
    redis_timeout_ms: int = 250
    statement_zone: str = "UTC"
    statement_due_days: int = DUE_DAYS
    leases_in_memory: int = LEASES_MAX
    connections_max: int = CONNECTIONS_MAX
    connections_per_address_max: int = PER_ADDRESS_MAX
    window_max_ms: int = LEASE_MAX_MS_DEFAULT
    pool: PoolOptions = POOL

    @property
    def admin_key_path(self) -> Path:
        """Where the first administrator's key is written."""
        return self.data_dir / ADMIN_KEY_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A running application: the ASGI callable and what it stands on."""

    config: Config
    api: Api
    services: Services
    database_url: str


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[App]:
    """Start the parts in order; stop them in reverse, what was accepted being carried out."""
    async with AsyncExitStack() as stack:
        url = config.database_url
        if url is None:
            url = await _embedded(config, stack)
        note = config.primary_note
        if config.database_url and not config.is_apart:
            note = _open_directory(config)
            stack.callback(os.close, note)
        primary = Primary(note)
        pool = await open_pool(url, config.pool, primary)
        stack.push_async_callback(_close, pool)
        if not config.is_apart:
            await _prepare(pool, config)
        options = FunnelOptions(
            kept_leases_max=config.leases_in_memory, window_max_ms=config.window_max_ms
        )
        ledger = Ledger(pool, options)
        await ledger.start()
        stack.push_async_callback(ledger.stop)
        limiter = _limiter(config, pool)
        steadiness = ledger.funnel.shelf.steadiness
        watcher = ClockWatcher(pool, steadiness)
        await watcher.tick()
        await watcher.start()
        stack.push_async_callback(watcher.stop)
        for job in (
            Requests(ledger),
            Statements(ledger, zone=config.statement_zone, due_days=config.statement_due_days),
            Anomalies(ledger),
            Sweeper(ledger),
            Sealer(pool),
            Snapshotter(pool),
            Statistician(pool),
            Retention(pool),
            BucketSaver(limiter),
        ):
            job.is_held_up = steadiness.is_off
            await job.start()
            stack.push_async_callback(job.stop)
        gpu_pools, line = await _dispatching(ledger, stack)
        services = Services(
            pool=pool,
            primary=primary,
            ledger=ledger,
            reads=Reads(pool),
            keyring=Keyring(pool, defaults=config.request_limits),
            directory=Directory(pool),
            limiter=limiter,
            gpu_pools=gpu_pools,
            line=line,
        )
        api = Api(services, routes(has_test_clock=config.test_clock))
        stack.callback(api.log.close)
        yield App(config=config, api=api, services=services, database_url=url)


def _limiter(config: Config, pool: Pool) -> Limiter:
    """Request limits in this process, or in Redis where one is named."""
    levels = Levels(pool)
    if config.redis_url is None:
        return ProcessLimiter(levels)
    try:
        from gpucredits.service.redis_limiter import RedisLimiter  # noqa: PLC0415  # an extra
        from gpucredits.store.redis_buckets import RedisAddressError, RedisBuckets  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise RedisSetupError(
            "--redis-url needs the Redis client: pip install 'gpucredits[redis]'"
        ) from error
    try:
        buckets = RedisBuckets(config.redis_url, timeout_s=config.redis_timeout_ms / 1_000)
    except RedisAddressError as error:
        raise RedisSetupError(f"--redis-url: {error}") from None
    return RedisLimiter(buckets, levels)


async def _dispatching(ledger: Ledger, stack: AsyncExitStack) -> tuple[GpuPools, Line]:
    """Pools, the queue in front of them, and the dispatcher, which hears of what happens."""
    gpu_pools = GpuPools(ledger.pool, ledger.funnel.shelf.windows)
    line = Line(ledger.pool)
    await gpu_pools.refresh()
    dispatching = Dispatching(ledger, gpu_pools)
    dispatching.is_held_up = ledger.funnel.shelf.steadiness.is_off
    rings = {pools.CHANNEL: dispatching.wake, queue.CHANNEL: line.news}
    for part in (line, dispatching, Bell(ledger.pool, rings)):
        await part.start()
        stack.push_async_callback(part.stop)
    return gpu_pools, line


async def _embedded(config: Config, stack: AsyncExitStack) -> str:
    make_data_dir(config.data_dir)
    private.check_secret(config.admin_key_path)
    server = EmbeddedPostgres(config.data_dir)
    url = await asyncio.to_thread(server.start)
    stack.push_async_callback(asyncio.to_thread, server.stop)
    return url


def _open_directory(config: Config) -> int:
    """Check the data directory beside a database of somebody else; its note of the primary."""
    private.make_directory(config.data_dir)
    private.check_secret(config.admin_key_path)
    return open_note(config.data_dir / PRIMARY_FILE)


@dataclass(frozen=True, slots=True)
class Lent:
    """What a process of root lends to the one that serves: a user, and descriptors.

    ``sockets`` is the directory of the database's socket, which lies behind directories that the
    user cannot pass; ``note`` is where the newest primary is noted.
    """

    user: RunAs
    sockets: int | None = None
    note: int | None = None


@contextmanager
def database_for_another(config: Config) -> Iterator[Lent]:
    """Prepare the database for a server in a process of another user; run it if it is ours."""
    with ExitStack() as stack:
        if config.database_url is None:
            make_data_dir(config.data_dir)
            private.check_secret(config.admin_key_path)
            server = stack.enter_context(EmbeddedPostgres(config.data_dir))
            url, user, note = server.dsn(), server.user, None
            advice = sealed_advice(Layout(config.data_dir).cluster)
        else:
            url, note = config.database_url, _open_directory(config)
            stack.callback(os.close, note)
            user, advice = serving_user(), serving_advice()
        if user.is_sealed:
            logger.warning(advice)
        asyncio.run(_prepare_alone(config, url, note))
        sockets = None
        if folder := socket_directory(url):
            sockets = os.open(folder, private.DIRECTORY)
            stack.callback(os.close, sockets)
        yield Lent(user, sockets, note)


async def _prepare_alone(config: Config, url: str, note: int | None) -> None:
    pool = await open_pool(url, PREPARING, Primary(note))
    try:
        await _prepare(pool, config)
    finally:
        await _close(pool)


async def _prepare(pool: Pool, config: Config) -> None:
    """Bring the tables up to date, and let the first administrator in."""
    async with pool.acquire() as connection:
        await migrate(connection, read_migrations())
    await _require_true_time(pool, config)
    await ensure_admin_key(pool, config.admin_key_path)


async def _require_true_time(pool: Pool, config: Config) -> None:
    offset_us = await read_offset(pool)
    if offset_us and not config.test_clock:
        raise ClockMovedError(
            f"a test clock has moved this database's time by {offset_us // 1_000_000} s: start "
            "with --test-clock, or use another data directory or database"
        )


async def _close(pool: Pool) -> None:
    try:
        async with asyncio.timeout(10):
            await pool.close()
    except TimeoutError:
        pool.terminate()
