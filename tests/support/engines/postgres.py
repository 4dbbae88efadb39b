"""A real PostgreSQL for the tests of one worker process, and a fresh database for each test."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Any

import asyncpg

from gpucredits.store.database.migrate import migrate, read_schema
from gpucredits.store.embedded.server import EmbeddedPostgres
from gpucredits.store.memory import memory_bytes
from support.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator

# Small, but as durable as production.
SMALL = {"shared_buffers": "64MB", "max_wal_size": "256MB", "max_connections": "60"}
MEMORY = Path("/dev/shm")
SPACE_MIN = 4 << 30  # what is free there, before a directory is made in it
TEMPLATE = "gpucredits_template"
COMMAND_TIMEOUT_S = HANGS_S


class TestServer:
    """One running server with a migrated template, from which databases are copied."""

    __test__ = False  # not a test class

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server
        self._numbers = itertools.count(1)
        sql(server.dsn("postgres"), f"CREATE DATABASE {TEMPLATE}")
        asyncio.run(self._fill_template())

    async def _fill_template(self) -> None:
        connection = await asyncpg.connect(self.server.dsn(TEMPLATE), timeout=COMMAND_TIMEOUT_S)
        try:
            await migrate(connection, read_schema())
        finally:
            await connection.close()

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of a new database with every table, removed afterwards."""
        name = f"test_{next(self._numbers)}"
        admin = self.server.dsn("postgres")
        sql(admin, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        try:
            yield self.server.dsn(name)
        finally:
            sql(admin, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def test_server() -> Iterator[TestServer]:
    """Start a server in a directory of its own, and leave nothing behind."""
    with temporary_directory() as folder, EmbeddedPostgres(folder, settings=SMALL) as server:
        yield TestServer(server)


def has_memory() -> bool:
    """Whether files may lie in memory: there is room for them, and enough is left for programs."""
    is_open = os.access(MEMORY, os.W_OK | os.X_OK)
    return is_open and disk_usage(MEMORY).free > SPACE_MIN and memory_bytes() > 2 * SPACE_MIN


@contextmanager
def temporary_directory(*, on_disk: bool = False) -> Iterator[Path]:
    """A directory with a short path, removed afterwards even where others own what is in it.

    It is in memory where the machine has the space: a database is made in a tenth of the time, and
    no commit waits for a disk. ``on_disk``: for tests in which the disk itself is the point.
    """
    place = MEMORY if has_memory() and not on_disk else None
    folder = Path(tempfile.mkdtemp(prefix="gct-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def sql(dsn: str, statement: str, *values: object) -> Any:
    """Run one statement on a connection of its own; the first value of its first row."""

    async def run() -> Any:
        connection = await asyncpg.connect(
            dsn, timeout=COMMAND_TIMEOUT_S, command_timeout=COMMAND_TIMEOUT_S
        )
        try:
            return await connection.fetchval(statement, *values)
        finally:
            await connection.close(timeout=COMMAND_TIMEOUT_S)

    return asyncio.run(run())
