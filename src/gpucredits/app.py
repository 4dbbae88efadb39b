"""The composition root: a database, the service on top of it, and the API in front.

Owns: the order in which the parts start and stop, and the one configuration they share.
Must not: do anything that a part could do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpucredits.api.http.asgi import Api
from gpucredits.api.routes import routes
from gpucredits.api.transport.bounds import CONNECTIONS_MAX, PER_ADDRESS_MAX
from gpucredits.core.bounds import LEASE_MAX_MS_DEFAULT, OUTAGE_GRACE_MS_DEFAULT
from gpucredits.core.request_limit import Defaults
from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.billing import Anomalies, Requests, Statements
from gpucredits.jobs.bucket_saver import BucketSaver
from gpucredits.jobs.clock import ClockWatcher, SignOfLife
from gpucredits.jobs.dispatcher import Dispatching
from gpucredits.jobs.metering import EventPublishing, EventRelease, UsageReading
from gpucredits.jobs.reconciler import Reconciler
from gpucredits.jobs.refusal_recorder import RefusalRecorder
from gpucredits.jobs.sweeper import Sweeper
from gpucredits.jobs.upkeep import Retention, Sealer, Snapshotter, Statistician
from gpucredits.metering.address import bus_at
from gpucredits.metering.bus import BusSetupError
from gpucredits.metering.pipeline import Pipeline
from gpucredits.metering.standing import ReadersStanding
from gpucredits.service.access.admin_keys import ensure_admin_key
from gpucredits.service.access.permissions import Keyring
from gpucredits.service.access.refusals import Refusals
from gpucredits.service.access.signing import SECRET_BYTES, SigningKeys
from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.dispatch.queue import RequestQueue
from gpucredits.service.limits.bucket_levels import Levels
from gpucredits.service.limits.limiter import Limiter, ProcessLimiter
from gpucredits.service.reads.books import Reads
from gpucredits.service.reads.orgs import Directory
from gpucredits.service.reconciliation.passes import ReconcilerState
from gpucredits.service.services import Services, UseCases
from gpucredits.service.write.ledger import Ledger, WriteOptions
from gpucredits.store.book.book_cache import LEASES_MAX
from gpucredits.store.clock import read_offset
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import Notifier, PoolOptions, open_pool
from gpucredits.store.database.migrate import migrate, read_schema
from gpucredits.store.database.primary import Primary, open_note, socket_directory
from gpucredits.store.dispatch import pools, queue
from gpucredits.store.embedded import private
from gpucredits.store.embedded.cluster import Layout
from gpucredits.store.embedded.run_as import RunAs, sealed_advice, serving_advice, serving_user
from gpucredits.store.embedded.server import EmbeddedPostgres, make_data_dir

logger = logging.getLogger(__name__)

ADMIN_KEY_FILE: Final = "admin.key"
PRIMARY_FILE: Final = "primary.seen"
SIGNING_FILE: Final = "signing.secret"
SIGNING_ADVICE: Final = "Copy signing.secret from the first server (mode 0600)."
POOL = PoolOptions(connections_min=2, connections_max=16)
PREPARING = PoolOptions(connections_min=1, connections_max=2)


class ClockMovedError(Exception):
    """The database's time was moved by a test server; it must not be mistaken for real time."""


class RedisSetupError(Exception):
    """Request limits are to be shared through Redis, and what was given cannot do it."""


class SigningSecretError(Exception):
    """The file of the signing secret cannot be used; the message says why."""


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
    bus: str | None = field(default=None, repr=False)  # it may hold a password
    statement_zone: str = "UTC"
    statement_due_days: int = DUE_DAYS
    leases_in_memory: int = LEASES_MAX
    connections_max: int = CONNECTIONS_MAX
    connections_per_address_max: int = PER_ADDRESS_MAX
    window_max_ms: int = LEASE_MAX_MS_DEFAULT
    outage_grace_ms: int = OUTAGE_GRACE_MS_DEFAULT
    signing_secret_file: Path | None = None  # instead of the one in the data directory
    signing_secret: bytes | None = field(default=None, repr=False)  # lent by a process of root
    pool: PoolOptions = POOL

    @property
    def admin_key_path(self) -> Path:
        """Where the first administrator's key is written."""
        return self.data_dir / ADMIN_KEY_FILE

    @property
    def signing_secret_path(self) -> Path:
        """Where the secret is that seals signing keys."""
        return self.signing_secret_file or self.data_dir / SIGNING_FILE


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
        ledger = _ledger(config, pool)
        stack.push_async_callback(ledger.stop)
        limiter = _limiter(config, pool)
        refusals = Refusals()
        reconciling, event_readers = ReconcilerState(), ReadersStanding()
        await _clock_jobs(ledger, stack)
        for job in (
            Requests(ledger),
            Statements(ledger, zone=config.statement_zone, due_days=config.statement_due_days),
            Anomalies(ledger),
            Reconciler(ledger, reconciling),
            Sweeper(ledger),
            Sealer(pool),
            Snapshotter(pool),
            Statistician(pool),
            Retention(pool, event_readers),
            EventRelease(pool),
            BucketSaver(limiter),
            RefusalRecorder(pool, refusals),
        ):
            job.is_held_up = ledger.cache.clock_check.is_off
            await job.start()
            stack.push_async_callback(job.stop)
        gpu_pools, requests = await _dispatching(ledger, stack)
        signing = SigningKeys(pool, config.signing_secret or signing_secret(config))
        pipeline = await _metering(config, ledger, stack, signing.prover)
        services = Services(
            run=UseCases(pool),
            primary=primary,
            ledger=ledger,
            reads=Reads(pool),
            keyring=Keyring(pool, defaults=config.request_limits),
            directory=Directory(pool),
            limiter=limiter,
            gpu_pools=gpu_pools,
            queue=requests,
            signing=signing,
            refusals=refusals,
            pipeline=pipeline,
            reconciling=reconciling,
            event_readers=event_readers,
        )
        api = Api(services, routes(has_test_clock=config.test_clock))
        stack.callback(api.log.close)
        yield App(config=config, api=api, services=services, database_url=url)


async def _clock_jobs(ledger: Ledger, stack: AsyncExitStack) -> None:
    """What must have looked at the clock once before anything is decided."""
    clock_check = ledger.cache.clock_check
    signs = SignOfLife(ledger.pool, ledger.cache.life)
    signs.is_held_up = clock_check.is_off
    for job in (ClockWatcher(ledger.pool, clock_check), signs):
        await job.tick()
        await job.start()
        stack.push_async_callback(job.stop)


def _ledger(config: Config, pool: Pool) -> Ledger:
    """The door to the books, with what was set for it."""
    options = WriteOptions(
        kept_leases_max=config.leases_in_memory, window_max_ms=config.window_max_ms
    )
    ledger = Ledger(pool, options)
    ledger.cache.life.grace_ms = config.outage_grace_ms
    return ledger


def _limiter(config: Config, pool: Pool) -> Limiter:
    """Request limits in this process, or in Redis where one is named."""
    levels = Levels(pool)
    if config.redis_url is None:
        return ProcessLimiter(levels)
    try:
        from gpucredits.service.limits.redis_limiter import RedisLimiter  # noqa: PLC0415  # an extra
        from gpucredits.store.limits.redis_buckets import RedisAddressError, RedisBuckets  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise RedisSetupError(
            "--redis-url needs the Redis client: pip install 'gpucredits[redis]'"
        ) from error
    try:
        buckets = RedisBuckets(config.redis_url, timeout_s=config.redis_timeout_ms / 1_000)
    except RedisAddressError as error:
        raise RedisSetupError(f"--redis-url: {error}") from None
    return RedisLimiter(buckets, levels)


async def _metering(
    config: Config, ledger: Ledger, stack: AsyncExitStack, prover: bytes
) -> Pipeline | None:
    """The pipeline of a server with a bus, which need not be there yet."""
    if config.bus is None:
        return None
    try:
        bus = bus_at(config.bus, ledger.pool)
    except BusSetupError as error:
        raise BusSetupError(f"--bus: {error}") from None
    stack.push_async_callback(bus.close)
    pipeline = Pipeline(ledger.pool, bus, prover)
    reading = UsageReading(pipeline)
    pipeline.on_published = reading.wake
    for job in (reading, EventPublishing(pipeline)):
        await job.start()
        stack.push_async_callback(job.stop)
    return pipeline


async def _dispatching(ledger: Ledger, stack: AsyncExitStack) -> tuple[GpuPools, RequestQueue]:
    """Pools, the queue in front of them, and the dispatcher, which hears of what happens."""
    gpu_pools = GpuPools(ledger.pool, ledger.cache.windows)
    requests = RequestQueue(ledger.pool)
    await gpu_pools.refresh()
    dispatching = Dispatching(ledger, gpu_pools)
    dispatching.is_held_up = ledger.cache.clock_check.is_off
    rings = {pools.CHANNEL: dispatching.wake, queue.CHANNEL: requests.news}
    for part in (requests, dispatching, Notifier(ledger.pool, rings)):
        await part.start()
        stack.push_async_callback(part.stop)
    return gpu_pools, requests


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
    """What a process of root lends to the one that serves: a user, descriptors, and a secret.

    ``sockets`` is the directory of the database's socket, which lies behind directories that the
    user cannot pass; ``note`` is where the newest primary is noted.
    """

    user: RunAs
    sockets: int | None = None
    note: int | None = None
    signing_secret: bytes = b""


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
        yield Lent(user, sockets, note, signing_secret(config))


async def _prepare_alone(config: Config, url: str, note: int | None) -> None:
    pool = await open_pool(url, PREPARING, Primary(note))
    try:
        await _prepare(pool, config)
    finally:
        await _close(pool)


async def _prepare(pool: Pool, config: Config) -> None:
    """Bring the tables up to date, and let the first administrator in."""
    async with pool.acquire() as connection:
        await migrate(connection, read_schema())
    await _require_true_time(pool, config)
    await ensure_admin_key(pool, config.admin_key_path)


def signing_secret(config: Config) -> bytes:
    """The secret that seals signing keys: read from its file, or made where there is none yet.

    A file that was named must be there: a server that made its own would not know the others' keys.
    """
    path = config.signing_secret_path
    try:
        if config.signing_secret_file is None:
            private.check_secret(path)
            text = private.read_file(path)
        else:
            text = _shared_secret(path)
    except FileNotFoundError:
        text = secrets.token_hex(SECRET_BYTES).encode("ascii")
        private.write_file(path, text + b"\n")
    try:
        secret = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise SigningSecretError(f"{path} holds no signing secret. {SIGNING_ADVICE}")
    return secret


def _shared_secret(path: Path) -> bytes:
    """The content of a file that an operator named, and that others than its group cannot read."""
    try:
        if path.stat().st_mode & stat.S_IRWXO:
            raise SigningSecretError(f"all users can read or change {path}: chmod o= {path}")
        return path.read_bytes()
    except OSError as error:
        raise SigningSecretError(f"{path}: {error.strerror}. {SIGNING_ADVICE}") from error


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
