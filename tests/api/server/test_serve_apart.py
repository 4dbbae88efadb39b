"""A server that root started: HTTP is served without root, and two processes share one fate."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gpucredits.store.database.primary import socket_directory, through
from gpucredits.store.embedded import leftovers, run_as
from gpucredits.store.embedded.cluster import ROLE
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import sql, temporary_directory
from support.servers.http import Caller, running_server
from support.users import SOMEBODY, act_as, as_root
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


def status_of(pid: int) -> dict[str, list[str]]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


def require_no_root(pid: int, user: pwd.struct_passwd) -> None:
    """A process is another user's, in every way that the kernel tells."""
    told = status_of(pid)
    assert told["Uid"] == [str(user.pw_uid)] * 4
    assert told["Gid"] == [str(user.pw_gid)] * 4
    assert {int(told[name][0], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
    assert told["NoNewPrivs"] == ["1"]


@as_root
def test_http_is_served_without_root(data_dir: Path) -> None:
    """The serving process has no root id, no capability, and is closed to others of its user."""
    with running_server(data_dir) as server, httpx.Client(base_url=server.url) as http:
        Caller(http, server.admin_secret).made("/v1/accounts", {"path": "acme"})
        child = server.serving_pid
        user = run_as.unprivileged(data_dir / "postgres")
        require_no_root(child, user)
        assert status_of(server.process.pid)["Uid"] == ["0"] * 4  # so that this can be seen
        opened = act_as(user, "/bin/ls", f"/proc/{child}/fd")
        assert "Permission denied" in opened.stderr
        assert act_as(user, "/bin/ls", "/proc/self/fd").returncode == 0
        key = data_dir / "admin.key"
        assert (key.stat().st_uid, key.stat().st_mode & 0o777) == (0, 0o600)
        server.process.terminate()
        assert server.process.wait(HANGS_S) == 0
    assert not Path(f"/proc/{child}").exists()
    assert not (data_dir / "server.json").exists()
    is_warned = "useradd --system gpucredits" in (data_dir / "server.log").read_text()
    assert is_warned == (user.pw_name == "nobody")


@as_root
def test_http_is_served_without_root_beside_a_database_of_ones_own(
    data_dir: Path, database: str
) -> None:
    """With --database-url, too; what lies in the data directory stays root's."""
    with running_server(data_dir, "--database-url", database) as server:
        with httpx.Client(base_url=server.url) as http:
            Caller(http, server.admin_secret).made("/v1/accounts", {"path": "acme"})
            assert http.get("/healthz").status_code == 200
        require_no_root(server.serving_pid, run_as.unprivileged(None))
        for name in ("admin.key", "primary.seen"):
            found = (data_dir / name).stat()
            assert (found.st_uid, found.st_mode & 0o777) == (0, 0o600)
        assert (data_dir / "primary.seen").read_text().split()[1] == "1"
        server.process.terminate()
        assert server.process.wait(HANGS_S) == 0


@as_root
def test_a_database_that_knows_root_only_is_named_with_what_to_do(data_dir: Path) -> None:
    """The child cannot log in as root did; the error names its user, and nothing serves."""
    with temporary_directory() as folder, EmbeddedPostgres(folder) as server:
        (folder / "postgres.ident").write_text(f'gpucredits "root" {ROLE}\n')
        sql(server.dsn(), "SELECT pg_reload_conf()")
        words = ("serve", "--port", "0", "--data-dir", str(data_dir))
        refused = run(*words, "--database-url", server.dsn())
    user = run_as.unprivileged(None).pw_name
    assert refused.returncode == 1
    assert f"user {user} cannot open the database" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("command", ["serve", "verify"])
def test_a_database_that_is_not_there_is_no_traceback(
    data_dir: Path, database: str, command: str
) -> None:
    """A wrong name in the address is told at once, in one sentence."""
    options = ("--port", "0", "--data-dir", str(data_dir)) if command == "serve" else ()
    refused = run(command, *options, "--database-url", database.replace("/test_", "/absent_"))
    assert refused.returncode in (1, 2)
    assert "does not exist. Check role, password and database name" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_address_is_led_through_another_directory() -> None:
    """Only the one socket of an address is; hosts of a network, and several, stay as they are."""
    url = "postgresql://me:a%40b@/books?host=/run/pg&sslmode=disable"
    assert socket_directory(url) == Path("/run/pg")
    led = through(url, Path("/proc/self/fd/7"))
    assert led == "postgresql://me:a%40b@/books?host=%2Fproc%2Fself%2Ffd%2F7&sslmode=disable"
    for other in ("db.internal", "/a,/b"):
        assert socket_directory(f"postgresql://me@/books?host={other}") is None
    assert socket_directory("postgresql://me@db.internal/books?host=/run/pg") is None
    assert socket_directory("postgresql://me@/books") is None


@as_root
def test_neither_process_outlives_the_other(data_dir: Path) -> None:
    """Killed with -9, the child ends the parent in order, and the parent takes the child along."""
    with running_server(data_dir) as server:
        os.kill(server.serving_pid, signal.SIGKILL)
        assert server.process.wait(HANGS_S) == 1
        assert server.process.stdout is not None
        assert "ended by signal 9" in server.process.stdout.read()
        assert not leftovers.server_processes(data_dir / "postgres")
    with running_server(data_dir) as server:
        child = server.serving_pid
        server.process.kill()
        server.process.wait(HANGS_S)
        until(lambda: not Path(f"/proc/{child}").exists())
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/healthz")


@as_root
def test_what_the_child_refuses_ends_the_server_with_one_message(data_dir: Path) -> None:
    """An error of the process without root is told once, and no process is left."""
    words = ("serve", "--port", "0", "--data-dir", str(data_dir), "--redis-url", "nonsense://x")
    result = run(*words)
    assert result.returncode == 1
    assert result.stderr.count("--redis-url") == 1
    assert "Traceback" not in result.stderr
    assert not leftovers.server_processes(data_dir / "postgres")


def test_a_planted_admin_key_stops_the_start(data_dir: Path, database: str) -> None:
    """A key that others can read is not entered, nor one of somebody else; our own is."""
    key = data_dir / "admin.key"
    key.write_text("gck_" + "a" * 43 + "\n")
    key.chmod(0o644)
    words = ("serve", "--port", "0", "--data-dir", str(data_dir), "--database-url", database)
    refused = run(*words)
    assert (refused.returncode, f"rm {key}" in refused.stderr) == (1, True)
    if os.geteuid() == 0:
        key.chmod(0o600)
        os.chown(key, SOMEBODY.pw_uid, SOMEBODY.pw_gid)
        refused = run(*words)
        assert refused.returncode == 1
        assert f"belongs to user {SOMEBODY.pw_name}" in refused.stderr
        os.chown(key, 0, 0)
    key.chmod(0o600)
    with running_server(data_dir, "--database-url", database) as server:
        assert server.admin_secret == "gck_" + "a" * 43
        with httpx.Client(base_url=server.url) as http:
            assert Caller(http, server.admin_secret).read("/v1/accounts")["accounts"] == []
