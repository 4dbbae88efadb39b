"""``gpucredits serve``: run the server until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import click
import uvicorn
import uvloop

from gpucredits.api.http.connections import BoundedConnection
from gpucredits.api.http.log import log_json
from gpucredits.api.transport.bounds import (
    CONNECTIONS_MAX,
    PER_ADDRESS_MAX,
    Connected,
    ConnectionBounds,
    connections_that_fit,
)
from gpucredits.api.transport.context import TlsFilesError
from gpucredits.api.transport.door import TlsDoor
from gpucredits.app import (
    ClockMovedError,
    Config,
    RedisSetupError,
    SigningSecretError,
    running,
)
from gpucredits.cli.server.announcement import announced
from gpucredits.cli.server.serve_apart import Said, serve_apart
from gpucredits.cli.server.serve_limits import LimitOptions, limit_options
from gpucredits.cli.server.serve_tls import TlsOptions, shut_out_to, tls_options
from gpucredits.cli.server.tls_renewal import TlsRenewal
from gpucredits.cli.terminal.address import DATA_DIR_DEFAULT
from gpucredits.cli.terminal.files import trouble
from gpucredits.cli.terminal.grammar import Command
from gpucredits.core import bounds
from gpucredits.core.period import check_zone
from gpucredits.core.statement import DUE_DAYS, DUE_DAYS_MAX
from gpucredits.metering.bus import BusSetupError
from gpucredits.store.database.durability import UnsafeDatabaseError
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.database.migrate import MigrationError
from gpucredits.store.database.primary import DatabaseAddressError
from gpucredits.store.embedded.cluster import Layout
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import lock
from gpucredits.store.memory import leases_that_fit

START_ERRORS = (
    BusSetupError,
    ClockMovedError,
    DatabaseAddressError,
    EmbeddedPostgresError,
    MigrationError,
    RedisSetupError,
    SigningSecretError,
    TlsFilesError,
    UnsafeDatabaseError,
    Unavailable,
)
GRACE_S = 20
LAST_ONE_ENDS_S = 2.0
POLL_S = 0.02
BACKLOG = 2_048


def known_zone(context: click.Context, option: click.Parameter, zone: str) -> str:
    """The zone itself, if it is one."""
    try:
        return check_zone(zone)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None


@click.command(cls=Command)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA_DIR_DEFAULT,
    show_default=True,
    envvar="GPUCREDITS_DATA_DIR",
    show_envvar=True,
    help="Where the embedded database and the admin key live.",
)
@click.option(
    "--database-url",
    envvar="GPUCREDITS_DATABASE_URL",
    show_envvar=True,
    help="A PostgreSQL of your own instead of the embedded one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8437,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--test-clock",
    is_flag=True,
    help="Let POST /v1/test/clock move time on. The database is for tests only from then on.",
)
@limit_options
@tls_options
@click.option(
    "--bus",
    metavar="ADDRESS",
    envvar="GPUCREDITS_BUS",
    show_envvar=True,
    help="Carry measured use and events over a bus: nats://HOST:PORT, kafka://HOST:PORT,... or"
    " postgres.  [default: no bus]",
)
@click.option(
    "--statement-due-days",
    type=click.IntRange(0, DUE_DAYS_MAX),
    default=DUE_DAYS,
    show_default=True,
    envvar="GPUCREDITS_STATEMENT_DUE_DAYS",
    show_envvar=True,
    help="How long after its closing a statement is due.",
)
@click.option(
    "--statement-zone",
    default="UTC",
    show_default=True,
    callback=known_zone,
    envvar="GPUCREDITS_STATEMENT_ZONE",
    show_envvar=True,
    help="The time zone that the months of statements are in.",
)
@click.option(
    "--window-max-seconds",
    type=click.IntRange(bounds.WINDOW_MS_MIN // 1_000, bounds.WINDOW_MS_MAX // 1_000),
    default=bounds.LEASE_MAX_MS_DEFAULT // 1_000,
    show_default=True,
    envvar="GPUCREDITS_WINDOW_MAX_SECONDS",
    show_envvar=True,
    help="How long a lease may last without a report, its escrow windows included.",
)
@click.option(
    "--outage-grace-seconds",
    type=click.IntRange(0, bounds.OUTAGE_GRACE_MS_MAX // 1_000),
    default=bounds.OUTAGE_GRACE_MS_DEFAULT // 1_000,
    show_default=True,
    envvar="GPUCREDITS_OUTAGE_GRACE_SECONDS",
    show_envvar=True,
    help="How long leases that were live may report after an outage of all servers; a lease's"
    " window if that is less.",
)
@click.option(
    "--leases-in-memory",
    type=click.IntRange(0, 10_000_000),
    default=leases_that_fit,
    show_default="what fits in an eighth of the memory, at most 2,000,000",
    envvar="GPUCREDITS_LEASES_IN_MEMORY",
    show_envvar=True,
    help="How many running leases to remember, at about 1 KB each, instead of reading them again;"
    " accounts, grants and limits count as well.",
)
@click.option(
    "--connections-max",
    type=click.IntRange(1, 1_000_000),
    default=CONNECTIONS_MAX,
    show_default=True,
    envvar="GPUCREDITS_CONNECTIONS_MAX",
    show_envvar=True,
    help="The most connections at once; fewer where the limit on open files is lower.",
)
@click.option(
    "--connections-per-address-max",
    type=click.IntRange(1, 1_000_000),
    default=PER_ADDRESS_MAX,
    show_default=True,
    envvar="GPUCREDITS_CONNECTIONS_PER_ADDRESS_MAX",
    show_envvar=True,
    help="The most connections at once from one address; behind a proxy, all are the proxy's.",
)
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as one line of JSON.")
def serve(  # noqa: PLR0913  # one argument for each option
    *,
    data_dir: Path,
    database_url: str | None,
    host: str,
    port: int,
    test_clock: bool,
    as_json: bool,
    limits: LimitOptions,
    tls: TlsOptions,
    bus: str | None,
    statement_due_days: int,
    statement_zone: str,
    window_max_seconds: int,
    outage_grace_seconds: int,
    leases_in_memory: int,
    connections_max: int,
    connections_per_address_max: int,
) -> None:
    """Run the server, by default with a PostgreSQL of its own.

    The server restarts and recovers its own PostgreSQL by itself. Ctrl-C or SIGTERM ends both.
    """
    config = Config(
        data_dir=data_dir.absolute(),
        database_url=database_url,
        host=host,
        port=port,
        test_clock=test_clock,
        request_limits=limits.defaults,
        redis_url=limits.redis_url,
        redis_timeout_ms=limits.redis_timeout_ms,
        bus=bus,
        statement_zone=statement_zone,
        statement_due_days=statement_due_days,
        window_max_ms=window_max_seconds * 1_000,
        outage_grace_ms=outage_grace_seconds * 1_000,
        leases_in_memory=leases_in_memory,
        connections_max=connections_max,
        connections_per_address_max=connections_per_address_max,
        signing_secret_file=tls.signing_secret_file,
    )
    log_json(sys.stderr)
    try:
        # Read as the user who started it: the one who serves may not read a private key.
        renewal = None if tls.files is None else TlsRenewal(tls.files)
        serving = partial(serve_until_told, renewal=renewal)
        listener = listen(config)
        url = address_of(listener, "http" if renewal is None else "https")
        said = partial(announced, url=url, as_json=as_json, renewal=renewal)
        if os.geteuid() == 0:
            serve_apart(config, listener, said=said, serve=serving)
        else:
            serving(config, listener, said)
    except START_ERRORS as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot serve: {trouble(error)}") from error


def serve_until_told(
    config: Config,
    listener: socket.socket,
    said: Said,
    renewal: TlsRenewal | None = None,
) -> None:
    """Serve in an event loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(config, listener, said, renewal))


async def run(
    config: Config, listener: socket.socket, said: Said, renewal: TlsRenewal | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was begun."""
    async with running(config) as app:
        bounds, connected = bounds_of(config), Connected()
        options = uvicorn.Config(
            app.api,
            http=bounded_connections(bounds, connected),
            interface="asgi3",
            lifespan="off",
            proxy_headers=False,
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=75,
            backlog=BACKLOG,
        )
        door = None
        if renewal is not None:
            refused, context = shut_out_to(app.services.refusals), renewal.context
            door = TlsDoor(listener, context, bounds=bounds, connected=connected, shut_out=refused)
            renewal.follow(door.renew)
        server = UvicornServer(options, door)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        settle_memory()
        listener.listen(BACKLOG)  # whoever reads the announcement may connect at once
        with said(config):
            await server.serve(sockets=[listener])


def bounds_of(config: Config) -> ConnectionBounds:
    """The bounds on connections of this server."""
    return ConnectionBounds(
        connections=connections_that_fit(config.connections_max),
        per_address=config.connections_per_address_max,
    )


def bounded_connections(bounds: ConnectionBounds, connected: Connected) -> type[asyncio.Protocol]:
    """What uvicorn makes for each connection, with the bounds of this server."""
    made = partial(BoundedConnection, bounds=bounds, connected=connected)
    return cast("type[asyncio.Protocol]", made)


def settle_memory() -> None:
    """Spare the collector what lives as long as the process, and let it come less often.

    A batch of heartbeats makes thousands of objects that die by themselves; looking for cycles
    among them cost more than anything else the collector found.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


class UvicornServer(uvicorn.Server):
    """A server that leaves signals to us: after it, the ledger and the database stop in order.

    With a door, connections come through the door, and uvicorn itself listens nowhere.
    """

    def __init__(self, config: uvicorn.Config, door: TlsDoor | None = None) -> None:
        super().__init__(config)
        self._door = door

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, at the door if there is one."""
        await super().startup(sockets if self._door is None else [])
        if self._door is not None:
            made: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
            state = self.server_state
            self._door.open(lambda: made(config=self.config, server_state=state, app_state={}))
            self.servers.append(cast("asyncio.Server", self._door))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch nothing and raise nothing again."""
        yield

    def stop(self) -> None:
        """Take no more requests; the second time, wait for none."""
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(config: Config) -> socket.socket:
    """Take the port before anything else is started."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bind(listener, config)
    except OSError as error:
        listener.close()
        if config.database_url is None:
            require_free(config.data_dir)
        where = f"{config.host}:{config.port}"
        other = ". Choose another port with --port" if error.errno == errno.EADDRINUSE else ""
        raise click.ClickException(
            f"cannot listen on {where}: {error.strerror or error}{other}"
        ) from error
    listener.set_inheritable(False)
    return listener


def bind(listener: socket.socket, config: Config) -> None:
    """Take the port; the child of a server that was killed may hold it for a moment."""
    deadline = time.monotonic() + (LAST_ONE_ENDS_S if os.geteuid() == 0 else 0)
    while True:
        try:
            return listener.bind((config.host, config.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
        time.sleep(POLL_S)


def require_free(data_dir: Path) -> None:
    """Say which process has the data directory, if one has: that is why its port is taken."""
    layout = Layout(data_dir)
    if layout.lock.exists():
        os.close(lock(layout))


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    """The address at which a client on this machine reaches the server."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # not bound here
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
