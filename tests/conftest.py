"""Fixtures for every test: servers for each worker process, a database for each test."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from gpucredits.compiled import is_compiled
from gpucredits.store.embedded.server import EmbeddedPostgres
from support import postgres as postgres_support
from support.http import RunningServer, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Tests that run in the background may have been told to ignore these, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is compiled cannot be taken apart: tests that take a piece out need the sources."""
    if is_compiled():
        skip = pytest.mark.skip(reason="takes a piece out of rules that are compiled")
        for item in items:
            if item.get_closest_marker("as_source"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_support.TestServer]:
    """The worker's own PostgreSQL, started when a test first wants it."""
    with postgres_support.test_server() as server:
        yield server


@pytest.fixture
def database(postgres: postgres_support.TestServer) -> Iterator[str]:
    """The address of a fresh database with every migration applied."""
    with postgres.database() as dsn:
        yield dsn


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A short empty directory for a server of the test's own."""
    with postgres_support.temporary_directory() as folder:
        yield folder


@pytest.fixture(scope="session")
def made_dir() -> Iterator[Path]:
    """A data directory with a stopped cluster, shared by tests that start it one at a time."""
    with postgres_support.temporary_directory() as folder:
        with EmbeddedPostgres(folder, settings=postgres_support.SMALL):
            pass
        yield folder


@pytest.fixture(scope="session")
def database_of_server(postgres: postgres_support.TestServer) -> Iterator[str]:
    """The address of the server's database."""
    with postgres.database() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def server(database_of_server: str) -> Iterator[RunningServer]:
    """A server on a database of its own, with a clock that can be moved."""
    options = ("--database-url", database_of_server, "--test-clock")
    with (
        postgres_support.temporary_directory() as folder,
        running_server(folder, *options) as running,
    ):
        yield running
