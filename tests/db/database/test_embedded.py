"""The embedded PostgreSQL in good times: how it is made, reached, bounded and refused."""

from __future__ import annotations

import os
import pwd
import stat
import sys
from pathlib import Path

import asyncpg
import pytest

from gpucredits.store.embedded import cluster, run_as
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import SMALL, TestServer, sql
from support.users import as_root, hide_own_user
from support.waiting import HANGS_S


def test_cluster_is_made_to_keep_and_to_check_what_it_stores(postgres: TestServer) -> None:
    """Proves the defaults: durable, checksummed, Unicode, with an order that no library changes."""
    wanted = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "TimeZone": "UTC",
        "listen_addresses": "",
    }
    dsn = postgres.server.dsn()
    found = {name: sql(dsn, "SELECT current_setting($1)", name) for name in wanted}
    assert found == wanted
    locale = "SELECT datlocprovider::text || ' ' || datlocale FROM pg_database WHERE datname = $1"
    assert sql(dsn, locale, "gpucredits") == "b C.UTF-8"


def test_only_our_own_user_is_let_in(postgres: TestServer) -> None:
    """Proves that the socket's directory is private and that no other role can be claimed."""
    sockets = Path(sql(postgres.server.dsn(), "SHOW unix_socket_directories").strip('"'))
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    somebody = postgres.server.dsn().replace("//gpucredits@", "//postgres@")
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
        sql(somebody, "SELECT 1")


def test_data_stays_from_one_run_to_the_next(data_dir: Path) -> None:
    """Proves that stop and start keep the data and leave no process, socket or pid file between."""
    server = EmbeddedPostgres(data_dir, settings=SMALL)
    with server:
        sql(server.dsn(), "CREATE TABLE kept AS SELECT 42 AS answer")
        pid = server.pid
    assert not Path(f"/proc/{pid}").exists()
    assert sorted(path.name for path in data_dir.iterdir()) == [
        "postgres",
        "postgres.hba",
        "postgres.ident",
        "postgres.lock",
        "postgres.log",
    ]
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
    with server:
        assert sql(server.dsn(), "SELECT answer FROM kept") == 42
        assert server.restarts == 0


def test_second_server_on_one_made_directory_is_refused(made_dir: Path) -> None:
    """Proves that two supervisors cannot fight over one cluster, and that the first is unharmed."""
    with EmbeddedPostgres(made_dir, settings=SMALL) as first:
        with pytest.raises(EmbeddedPostgresError, match=f"in use .*process {os.getpid()}"):
            EmbeddedPostgres(made_dir).start()
        assert sql(first.dsn(), "SELECT 1") == 1


def test_long_data_directory_gets_a_short_socket(data_dir: Path) -> None:
    """Proves that a path too long for a socket works, and that the short place is cleaned up."""
    deep = data_dir / ("long" * 20) / ("deep" * 20)
    with EmbeddedPostgres(deep, settings=SMALL) as server:
        note = deep / "postgres.socket"
        sockets = Path(note.read_text(encoding="utf-8").strip())
        assert cluster.fits(sockets)
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert sql(server.dsn(), "SELECT 1") == 1
    assert not sockets.exists()
    assert not note.exists()


def test_awkward_characters_in_the_data_directory_are_no_matter(data_dir: Path) -> None:
    """Proves that blanks, commas, quotes and percent signs in a path reach PostgreSQL unharmed."""
    for name in ("a b\"c'd%41é", "comma, too"):
        folder = data_dir / name
        with EmbeddedPostgres(folder, settings=SMALL, start_timeout_s=HANGS_S) as server:
            assert sql(server.dsn(), "SHOW data_directory") == str(folder / "postgres")


def test_cluster_of_another_version_is_refused_in_words(data_dir: Path) -> None:
    """Proves that an upgrade of the programs does not touch data it cannot open."""
    made = data_dir / "postgres"
    made.mkdir()
    (made / "PG_VERSION").write_text("15\n", encoding="ascii")
    with pytest.raises(EmbeddedPostgresError, match=r"written by PostgreSQL 15.*pg_upgrade"):
        EmbeddedPostgres(data_dir).start()
    assert [path.name for path in made.iterdir()] == ["PG_VERSION"]


def test_directory_of_something_else_is_refused(data_dir: Path) -> None:
    """Proves that a directory that is no cluster is left alone."""
    (data_dir / "postgres").mkdir()
    (data_dir / "postgres" / "thesis.txt").touch()
    with pytest.raises(EmbeddedPostgresError, match="not a PostgreSQL cluster"):
        EmbeddedPostgres(data_dir).start()
    assert (data_dir / "postgres" / "thesis.txt").exists()


def test_initdb_killed_half_way_is_begun_again(data_dir: Path) -> None:
    """Proves that a half-made cluster is never taken for a whole one."""
    half = data_dir / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n", encoding="ascii")
    with EmbeddedPostgres(data_dir, settings=SMALL) as server:
        assert sql(server.dsn(), "SELECT 1") == 1
    assert not half.exists()


def test_setting_that_postgres_refuses_is_reported_with_its_words(data_dir: Path) -> None:
    """Proves that a server that cannot start ends in an error with the log, and frees the lock."""
    with pytest.raises(EmbeddedPostgresError, match=r'(?s)ended 4 times.*"work_mem".*lots'):
        EmbeddedPostgres(data_dir, settings=SMALL | {"work_mem": "lots"}).start()
    with EmbeddedPostgres(data_dir, settings=SMALL) as server:
        assert sql(server.dsn(), "SELECT 1") == 1


def test_damaged_files_are_reported_with_what_to_do(data_dir: Path) -> None:
    """Proves that a cluster which cannot start for its damage says how to go on."""
    with EmbeddedPostgres(data_dir, settings=SMALL):
        pass
    control = data_dir / "postgres" / "global" / "pg_control"
    content = bytearray(control.read_bytes())
    content[100] ^= 0xFF
    control.write_bytes(content)
    with pytest.raises(EmbeddedPostgresError, match=r"(?s)incorrect checksum.*restore the newest"):
        EmbeddedPostgres(data_dir, settings=SMALL).start()


@as_root
def test_root_may_keep_data_in_a_private_directory(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves that a directory closed to others is walked with one capability, and stays closed."""
    hide_own_user(monkeypatch)
    with EmbeddedPostgres(data_dir / "inner", settings=SMALL) as server:
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        assert f"Uid:\t{pwd.getpwnam('nobody').pw_uid}" in status
        assert f"CapEff:\t{1 << run_as.CAP_DAC_READ_SEARCH:016x}" in status
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


@as_root
def test_cluster_restored_by_root_from_a_copy_is_given_back(data_dir: Path) -> None:
    """Proves that a restored backup whose files belong to root starts all the same."""
    server = EmbeddedPostgres(data_dir, settings=SMALL)
    with server:
        sql(server.dsn(), "CREATE TABLE kept AS SELECT 42 AS answer")
    for path in (data_dir / "postgres", *(data_dir / "postgres").rglob("*")):
        os.chown(path, 0, 0)
    with server:
        assert sql(server.dsn(), "SELECT answer FROM kept") == 42


def test_python_found_through_a_library_path_starts_postgres_without_it(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves that LD_LIBRARY_PATH reaches Python, which may need it, and no PostgreSQL program."""
    picky = data_dir / "python"
    needed = 'test "$LD_LIBRARY_PATH" = /where/python/is || exit 127'
    picky.write_text(f'#!/bin/sh\n{needed}\nexec {sys.executable} "$@"\n', encoding="utf-8")
    picky.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(picky))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/where/python/is")
    with EmbeddedPostgres(data_dir / "data", settings=SMALL) as server:
        environment = Path(f"/proc/{server.pid}/environ").read_bytes()
        assert b"LC_ALL=C" in environment
        assert b"LD_LIBRARY_PATH" not in environment


def test_user_without_a_name_is_told_so() -> None:
    """Proves that an unnamed user id, which initdb cannot use, is refused in words."""
    with pytest.raises(EmbeddedPostgresError, match="4123456 has no entry in the user database"):
        run_as.require_name(4_123_456)
