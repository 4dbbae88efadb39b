"""Fixtures for the HTTP API: callers of the worker's server, and fresh names on it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.servers.http import Caller, RunningServer, fresh_name
from support.waiting import HANGS_S


@pytest.fixture(scope="session")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    """Connections to the server."""
    with httpx.Client(base_url=server.url, timeout=HANGS_S) as client:
        yield client


@pytest.fixture(scope="session")
def admin(server: RunningServer, http: httpx.Client) -> Caller:
    """The first administrator."""
    return Caller(http, server.admin_secret)


@pytest.fixture
def org(admin: Caller) -> str:
    """A fresh org with a project and a user below it, hours before any midnight."""
    admin.pass_midnights()
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
