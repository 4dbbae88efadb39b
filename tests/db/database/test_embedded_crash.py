"""The embedded PostgreSQL in bad times: killed servers, killed supervisors, and their remains."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from gpucredits.store.database.errors import DRIVER_ERRORS
from gpucredits.store.embedded import leftovers, run_as
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import SMALL, sql
from support.servers import server_process
from support.waiting import HANGS_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(server_process.__file__)


def keep(dsn: str) -> None:
    """Commit a new table with one row."""
    sql(dsn, "DROP TABLE IF EXISTS kept")
    sql(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")


def answers(dsn: str, statement: str) -> Any:
    """The statement's value, or None while the server is away."""
    with suppress(*DRIVER_ERRORS):
        return sql(dsn, statement)
    return None


@contextmanager
def supervising_process(
    data_dir: Path, user: run_as.RunAs | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """Another process that supervises a server, and what it said when ready; killed at the end."""
    program = [sys.executable, str(PROGRAM), str(data_dir)]
    command = user.command(*program) if user else program
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()
            process.wait(HANGS_S)
            until(lambda: not leftovers.server_processes(data_dir / "postgres"))


@pytest.mark.parametrize("victims", ["the postmaster", "every process"])
def test_killed_server_comes_back_with_all_it_acknowledged(made_dir: Path, victims: str) -> None:
    """Proves that kill -9 of the server is noticed, repaired, and loses no committed row."""
    with EmbeddedPostgres(made_dir, settings=SMALL) as server:
        sql(server.dsn(), "DROP TABLE IF EXISTS kept")
        sql(server.dsn(), "CREATE TABLE kept (n int)")
        for round_number in range(1, 3):
            sql(server.dsn(), "INSERT INTO kept SELECT generate_series(1, 100)")
            kill_and_wait(server, made_dir / "postgres", everything=victims != "the postmaster")
            assert sql(server.dsn(), "SELECT count(*) FROM kept") == 100 * round_number
            assert server.restarts == round_number


def kill_and_wait(server: EmbeddedPostgres, cluster: Path, *, everything: bool) -> None:
    """Kill the postmaster or all of the server, and wait until it serves again."""
    before = server.pid
    assert before is not None
    os.kill(before, signal.SIGSTOP)  # so that it cannot help the others to end
    for pid in leftovers.server_processes(cluster):
        if everything or pid == before:
            os.kill(pid, signal.SIGKILL)
    until(lambda: server.pid not in (None, before))
    until(lambda: answers(server.dsn(), "SELECT 1"))


def test_busy_backend_without_its_postmaster_does_not_block_the_restart(made_dir: Path) -> None:
    """Proves that an orphaned backend in an endless loop, which PostgreSQL waits for, is ended."""
    with EmbeddedPostgres(made_dir, settings=SMALL) as server:
        dsn, before = server.dsn(), server.pid
        assert before is not None
        endless = threading.Thread(target=answers, args=(dsn, "DO $$BEGIN LOOP END LOOP; END$$"))
        endless.start()
        looping = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO%'"
        backend = until(lambda: sql(dsn, looping))
        os.kill(before, signal.SIGKILL)
        until(lambda: server.pid not in (None, before) and answers(dsn, "SELECT 1"))
        assert backend not in leftovers.server_processes(made_dir / "postgres")
        endless.join(HANGS_S)
        assert not endless.is_alive()


def test_server_dies_with_a_killed_supervisor_and_the_next_one_works(made_dir: Path) -> None:
    """Proves that kill -9 of our own process leaves no server behind and loses nothing."""
    with supervising_process(made_dir) as (_, ready):
        keep(ready["dsn"])
        assert leftovers.server_processes(made_dir / "postgres")
    # The process was killed at the end of the block, and the server was seen to end.
    with EmbeddedPostgres(made_dir, settings=SMALL) as server:
        assert sql(server.dsn(), "SELECT answer FROM kept") == 42


def test_terminated_supervisor_shuts_the_server_down_in_order(made_dir: Path) -> None:
    """Proves that SIGTERM of ours is a fast shutdown: no recovery is needed afterwards."""
    with supervising_process(made_dir) as (process, ready):
        keep(ready["dsn"])
        process.terminate()
        assert process.wait(HANGS_S) == 0
    log = (made_dir / "postgres.log").read_text(encoding="utf-8")
    log = log[log.rindex("starting PostgreSQL") :]
    assert "received fast shutdown request" in log
    assert log.rstrip().endswith("database system is shut down")


def test_second_process_is_refused_while_the_first_lives(made_dir: Path) -> None:
    """Proves the lock between processes, and that it names the one to stop."""
    with (
        supervising_process(made_dir) as (process, _),
        pytest.raises(EmbeddedPostgresError, match=f"process {process.pid}"),
    ):
        EmbeddedPostgres(made_dir).start()


def test_living_leftover_is_stopped_and_replaced(made_dir: Path) -> None:
    """Proves that a server which nobody supervises any more does not keep us from starting."""
    server = EmbeddedPostgres(made_dir, settings=SMALL)
    with server:
        keep(server.dsn())
        command, dsn, sockets = server._command(), server.dsn(), server._sockets
    assert sockets is not None
    sockets.mkdir(mode=0o700)
    server._run_as.own(sockets)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as leftover:
        until(lambda: answers(dsn, "SELECT 1"))
        # It stays a zombie until we look: its number in the pid file is still a live one.
        with server:
            assert sql(server.dsn(), "SELECT answer FROM kept") == 42
            assert server.pid != leftover.pid
        assert leftover.wait(HANGS_S) is not None


def test_pid_file_that_names_a_stranger_is_seen_through(made_dir: Path) -> None:
    """Proves that a reused process id stops PostgreSQL alone but not us, and harms no stranger."""
    server = EmbeddedPostgres(made_dir, settings=SMALL)
    with server:
        command, user = server._command(), server._run_as
    asleep = user.command("/bin/sleep", "600")
    with subprocess.Popen(asleep) as stranger:
        program = Path(f"/proc/{stranger.pid}/comm")
        until(lambda: program.read_text(encoding="ascii") == "sleep\n")
        stale = made_dir / "postgres" / "postmaster.pid"
        stale.write_text(f"{stranger.pid}\n{made_dir / 'postgres'}\n", encoding="utf-8")
        user.own(stale)
        refused = subprocess.run(command, capture_output=True, timeout=HANGS_S, check=False)
        assert b'lock file "postmaster.pid" already exists' in refused.stderr
        with server:
            assert sql(server.dsn(), "SELECT 1") == 1
        assert stranger.poll() is None
        stranger.kill()


def test_socket_place_of_a_killed_run_is_cleaned_up_by_the_next(data_dir: Path) -> None:
    """Proves that a crash does not litter the temporary directory."""
    deep = data_dir / ("long" * 20) / ("deep" * 20)
    with supervising_process(deep):
        first = Path((deep / "postgres.socket").read_text(encoding="utf-8").strip())
        assert first.exists()
    with EmbeddedPostgres(deep, settings=SMALL):
        assert not first.exists()


def test_normal_user_needs_no_root(data_dir: Path) -> None:
    """Proves that the same works for a user without privileges, whoever runs the tests."""
    user = run_as.RunAs()
    if os.geteuid() == 0:  # with the one capability: Python may be installed below /root
        nobody = pwd.getpwnam("nobody")
        user = run_as.RunAs(
            uid=nobody.pw_uid, gid=nobody.pw_gid, capability=run_as.CAP_DAC_READ_SEARCH
        )
    user.own(data_dir)
    with supervising_process(data_dir, user) as (process, ready):
        assert ready["uid"] != 0
        owner = Path(f"/proc/{ready['postmaster']}").stat().st_uid
        assert owner == ready["uid"] == (data_dir / "postgres").stat().st_uid
        if os.geteuid() == ready["uid"]:
            assert sql(ready["dsn"], "SELECT 1") == 1
        else:  # not even root passes for the user whose server it is
            with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
                sql(ready["dsn"], "SELECT 1")
        process.terminate()
        assert process.wait(HANGS_S) == 0


def test_starting_does_not_stall_an_event_loop(made_dir: Path) -> None:
    """Proves that an asyncio server can start it in a thread that then ends."""

    async def serve() -> Any:
        server = EmbeddedPostgres(made_dir, settings=SMALL)
        dsn = await asyncio.to_thread(server.start)
        try:
            connection = await asyncpg.connect(dsn, timeout=HANGS_S)
            value = await connection.fetchval("SELECT 1")
            await connection.close()
        finally:
            await asyncio.to_thread(server.stop)
        return value

    assert asyncio.run(serve()) == 1
