"""Fixtures for the HTTP API: one real server for each worker, with a clock that can be moved."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.http import Caller, RunningServer, fresh_name, running_server
from support.postgres import TestServer, temporary_directory


@pytest.fixture(scope="session")
def database_of_server(postgres: TestServer) -> Iterator[str]:
    """The address of the server's database."""
    with postgres.database() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def server(database_of_server: str) -> Iterator[RunningServer]:
    """A server on a database of its own."""
    options = ("--database-url", database_of_server, "--test-clock")
    with temporary_directory() as folder, running_server(folder, *options) as running:
        yield running


@pytest.fixture(scope="session")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    """Connections to the server."""
    with httpx.Client(base_url=server.url, timeout=30.0) as client:
        yield client


@pytest.fixture(scope="session")
def admin(server: RunningServer, http: httpx.Client) -> Caller:
    """The first administrator."""
    return Caller(http, server.admin_secret)


@pytest.fixture
def org(admin: Caller) -> str:
    """A fresh org with a project and a user below it."""
    name = fresh_name("org")
    for path in (name, f"{name}/vision", f"{name}/vision/alice"):
        admin.made("/v1/accounts", {"path": path})
    return name


@pytest.fixture
def gpu_type(admin: Caller) -> str:
    """A fresh type of GPU that costs 36 credits an hour, a hundredth of a credit a second."""
    name = fresh_name("gpu-")
    admin.made("/v1/prices", {"gpu_type": name, "credits_per_gpu_hour": "36"})
    return name
