"""The server as a process: where it is, how it stops, and what survives its death."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from gpucredits.store.embedded.cluster import Layout
from gpucredits.store.embedded.server import lock
from support.engines.postgres import sql
from support.servers.http import Caller, problem, running_server
from support.waiting import HANGS_S, until


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gpucredits", *words],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def test_a_killed_server_starts_again_with_everything(data_dir: Path) -> None:
    """After kill -9 of the server and its database, the same key reads the same books."""
    with (
        running_server(data_dir) as first,
        httpx.Client(base_url=first.url, timeout=HANGS_S) as http,
    ):
        admin = Caller(http, first.admin_secret)
        admin.made("/v1/accounts", {"path": "acme"})
        admin.made("/v1/credits/issue", {"account": "acme", "amount": "5"}, key="five")
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(HANGS_S)
    with (
        running_server(data_dir) as second,
        httpx.Client(base_url=second.url, timeout=HANGS_S) as http,
    ):
        assert second.admin_secret == first.admin_secret
        admin = Caller(http, second.admin_secret)
        admin.made("/v1/credits/issue", {"account": "acme", "amount": "5"}, key="five")
        assert admin.read("/v1/accounts/acme/balance")["available"] == "5"
        assert problem(admin.post("/v1/test/clock", {"advance_seconds": 1}))[0] == 404
        assert "all hold" in run("verify", "--data-dir", str(data_dir)).stdout
        second.process.send_signal(signal.SIGTERM)
        assert second.process.wait(HANGS_S) == 0
    result = run("verify", "--data-dir", str(data_dir), "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["entries"] == 1


def test_a_dead_database_is_503_until_it_is_back(data_dir: Path) -> None:
    """While PostgreSQL is killed and restarted, callers are told to come back, and nothing else."""
    with (
        running_server(data_dir) as server,
        httpx.Client(base_url=server.url, timeout=HANGS_S) as http,
    ):
        admin = Caller(http, server.admin_secret)
        admin.made("/v1/accounts", {"path": "acme"})
        postmaster = (data_dir / "postgres" / "postmaster.pid").read_text().split()[0]
        os.kill(int(postmaster), signal.SIGKILL)
        issue = {"account": "acme", "amount": "5"}

        def is_done() -> bool:
            answer = admin.post("/v1/credits/issue", issue, key="through-it-all")
            if answer.status_code == 201:
                return True
            assert problem(answer) in {(503, "unavailable"), (503, "timeout"), (503, "busy")}
            assert int(answer.headers["retry-after"]) >= 1
            return False

        def is_read() -> bool:  # a reader may still hold a connection that died with the database
            answer = admin.get("/v1/accounts/acme/balance")
            if answer.status_code == 200:
                assert answer.json()["available"] == "5"
                return True
            assert problem(answer) == (503, "unavailable")
            return False

        until(is_done, timeout_s=HANGS_S)
        until(is_read, timeout_s=HANGS_S)
        until(lambda: http.get("/healthz").json()["status"] == "ok", timeout_s=HANGS_S)


def test_a_moved_clock_is_not_mistaken_for_real_time(database: str, data_dir: Path) -> None:
    """A server without the flag refuses a database whose time a test has moved."""
    sql(database, "UPDATE clock SET offset_us = 1000000")
    result = run("serve", "--port", "0", "--database-url", database, "--data-dir", str(data_dir))
    assert result.returncode == 1
    assert "--test-clock" in result.stderr


def test_verify_finds_damage(database: str) -> None:
    """A row that was changed behind the ledger's back ends verify with 1 and is shown."""
    assert run("verify", "--database-url", database).returncode == 0
    columns = "reserved, spent, debt, overrun, version, due_at, created_at, parent_id"
    sql(
        database,
        "INSERT INTO accounts (org_id, account_id, path, model, credit_limit, credit_limit_max,"
        f" status, metadata, remaining, {columns})"
        f" VALUES (0, 1, 'acme', 0, 0, 0, 0, '{{}}', 5,{' 0,' * 7} 0)",
    )
    result = run("verify", "--database-url", database)
    assert result.returncode == 1
    assert "BROKEN" in result.stdout


def test_a_port_in_use_is_said_plainly(data_dir: Path, database: str) -> None:
    """A second server on the same port ends with one line, not a traceback."""
    options = ("--database-url", database)
    with running_server(data_dir, *options) as server:
        port = server.url.rpartition(":")[2]
        result = run("serve", "--port", port, *options, "--data-dir", str(data_dir / "other"))
    assert result.returncode == 1
    assert "cannot listen" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_second_server_is_told_which_process_has_the_directory(data_dir: Path) -> None:
    """With the first one's port taken too, it is the directory that is said to be in use."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = ("serve", "--port", str(taken.getsockname()[1]), "--data-dir", str(data_dir))
        handle = lock(Layout(data_dir))
        refused = run(*command)
        os.close(handle)
        other = run(*command)
    assert (refused.returncode, other.returncode) == (1, 1)
    assert f"in use by another server (process {os.getpid()})" in refused.stderr
    assert "cannot listen" in other.stderr


def test_revoking_the_last_admin_key_does_not_lock_the_door(data_dir: Path, database: str) -> None:
    """The next start writes a new key; the revoked one, still in its file, does not come back."""
    options = ("--database-url", database)
    with (
        running_server(data_dir, *options) as first,
        httpx.Client(base_url=first.url, timeout=HANGS_S) as http,
    ):
        Caller(http, first.admin_secret).made("/v1/keys/key_0_1:revoke")
    with (
        running_server(data_dir, *options) as second,
        httpx.Client(base_url=second.url, timeout=HANGS_S) as http,
    ):
        assert second.admin_secret != first.admin_secret
        assert Caller(http, second.admin_secret).read("/v1/accounts")["accounts"] == []
        assert problem(Caller(http, first.admin_secret).get("/v1/accounts"))[0] == 401


def test_a_second_server_needs_nothing_of_the_first(data_dir: Path, database: str) -> None:
    """On a database that has keys, a new data directory is made, and no key is promised in it."""
    options = ("--database-url", database)
    with running_server(data_dir, *options) as first:
        words = [sys.executable, "-m", "gpucredits", "serve", "--json", "--port", "0", *options]
        other = data_dir / "other"
        with subprocess.Popen(
            [*words, "--data-dir", str(other)], stdout=subprocess.PIPE, text=True
        ) as second:
            try:
                assert second.stdout is not None
                facts = json.loads(second.stdout.readline())
                assert facts["admin_key"] is None
                with httpx.Client(base_url=facts["url"], timeout=HANGS_S) as http:
                    assert Caller(http, first.admin_secret).read("/v1/accounts")["accounts"] == []
            finally:
                second.terminate()
                second.wait(HANGS_S)


def test_a_data_directory_that_cannot_be_made_is_said_plainly(
    data_dir: Path, database: str
) -> None:
    """The message is about the directory, not about the port."""
    (data_dir / "file").write_text("")
    place = data_dir / "file" / "below"
    result = run("serve", "--port", "0", "--database-url", database, "--data-dir", str(place))
    assert result.returncode == 1
    assert "cannot serve" in result.stderr
    assert str(place.parent) in result.stderr
    assert "Traceback" not in result.stderr
