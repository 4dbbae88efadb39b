"""Fixtures for every test: servers for each worker process, a database for each test."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpucredits.compiled import is_compiled
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines import postgres as postgres_support
from support.servers.http import RunningServer, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

# Tests that run in the background may have been told to ignore these, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


BYTECODE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Let programs that tests start find the sources compiled, where no cache may lie beside them.

    Hundreds are started, and each would compile the whole package again. What is compiled stays in
    the virtual environment: the next run does not rewrite the assertions of every test again.
    """
    if "PYTHONDONTWRITEBYTECODE" in os.environ and not hasattr(config, "workerinput"):
        folder = config.stash[BYTECODE] = _bytecode_folder()
        Path(folder).chmod(0o755)  # servers may run as somebody else
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = folder


def _bytecode_folder() -> str:
    if sys.prefix == sys.base_prefix or not os.access(sys.prefix, os.W_OK):
        return tempfile.mkdtemp(prefix="gct-bytecode-")
    folder = Path(sys.prefix) / "bytecode"
    folder.mkdir(exist_ok=True)
    return str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind but what the next run needs."""
    if BYTECODE in config.stash:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        del os.environ["PYTHONPYCACHEPREFIX"]
        folder = Path(config.stash[BYTECODE])
        kept = [config.rootpath, Path(sys.prefix), Path(sys.base_prefix)]
        if not folder.is_relative_to(sys.prefix):
            kept = []
        _keep_only([folder / each.relative_to("/") for each in kept], folder)


def _keep_only(kept: list[Path], folder: Path) -> None:
    """Remove a folder but for what lies in those folders: tests import from temporary ones too."""
    if folder in kept:
        return
    if not any(each.is_relative_to(folder) for each in kept):
        shutil.rmtree(folder, ignore_errors=True)
        return
    for each in folder.iterdir():
        _keep_only(kept, each)


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
    """The address of a fresh database with every table and function."""
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
