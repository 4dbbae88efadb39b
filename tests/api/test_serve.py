"""The server as a process: where it is, how it stops, and what survives its death."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx

from support.http import Caller, problem, running_server
from support.postgres import sql

SERVE = (sys.executable, "-m", "gpucredits", "serve")


def test_a_killed_server_starts_again_with_everything(data_dir: Path) -> None:
    """After kill -9 of the server and its database, the same key reads the same books."""
    with running_server(data_dir) as first, httpx.Client(base_url=first.url) as http:
        admin = Caller(http, first.admin_secret)
        admin.made("/v1/accounts", {"path": "acme"})
        admin.made("/v1/credits/issue", {"account": "acme", "amount": "5"}, key="five")
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(10)
    with running_server(data_dir) as second, httpx.Client(base_url=second.url) as http:
        assert second.admin_secret == first.admin_secret
        admin = Caller(http, second.admin_secret)
        admin.made("/v1/credits/issue", {"account": "acme", "amount": "5"}, key="five")
        assert admin.read("/v1/accounts/acme/balance")["available"] == "5"
        assert problem(admin.post("/v1/test/clock", {"advance_seconds": 1}))[0] == 404
        second.process.send_signal(signal.SIGTERM)
        assert second.process.wait(30) == 0


def test_a_moved_clock_is_not_mistaken_for_real_time(database: str, data_dir: Path) -> None:
    """A server without the flag refuses a database whose time a test has moved."""
    sql(database, "UPDATE clock SET offset_us = 1000000")
    result = subprocess.run(
        [*SERVE, "--port", "0", "--database-url", database, "--data-dir", str(data_dir)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert "--test-clock" in result.stderr


def test_a_port_in_use_is_said_plainly(data_dir: Path, database: str) -> None:
    """A second server on the same port ends with one line, not a traceback."""
    options = ("--database-url", database)
    with running_server(data_dir, *options) as server:
        port = server.url.rpartition(":")[2]
        result = subprocess.run(
            [*SERVE, "--port", port, *options, "--data-dir", str(data_dir / "other")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 1
    assert "cannot listen" in result.stderr
    assert "Traceback" not in result.stderr
