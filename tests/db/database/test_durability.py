"""A database that could lose what it acknowledges is refused: seen on real servers set up badly."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING

import asyncpg
import pytest

from gpucredits.store.database.durability import (
    UnsafeDatabaseError,
    UnsafeSetting,
    findings,
    read_facts,
    require_durable,
)
from gpucredits.store.embedded import cluster
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import SMALL, TestServer, sql
from support.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

BAD_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "zero_damaged_pages": "on",
    "ignore_checksum_failure": "on",
    "default_transaction_read_only": "on",
}


def inspect(dsn: str) -> list[UnsafeSetting]:
    """What is wrong with the database behind an address."""

    async def run() -> list[UnsafeSetting]:
        connection = await asyncpg.connect(dsn, timeout=HANGS_S)
        try:
            return findings(await read_facts(connection))
        finally:
            await connection.close()

    return asyncio.run(run())


def wrong_with(folder: Path, settings: dict[str, str]) -> list[str]:
    """The settings found wrong on a server started with these."""
    with EmbeddedPostgres(folder, settings=SMALL | settings, start_timeout_s=HANGS_S) as server:
        return [finding.setting for finding in inspect(server.dsn())]


def test_our_own_server_has_nothing_wrong(postgres: TestServer) -> None:
    """Proves that the defaults pass, so that the refusals below mean something."""
    assert inspect(postgres.server.dsn()) == []


@pytest.mark.parametrize("setting", BAD_SETTINGS)
def test_each_setting_that_voids_durability_is_found(made_dir: Path, setting: str) -> None:
    """Proves that a real server with exactly one bad setting has exactly that finding."""
    assert wrong_with(made_dir, {setting: BAD_SETTINGS[setting]}) == [setting]


def test_local_commit_is_refused_only_where_a_standby_is_promised(made_dir: Path) -> None:
    """Proves the meaning of ``local``: as good as ``on`` alone, a lost failover with standbys."""
    assert wrong_with(made_dir, {"synchronous_commit": "local"}) == []
    promised = {"synchronous_commit": "local", "synchronous_standby_names": "other"}
    assert wrong_with(made_dir, promised) == ["synchronous_commit"]


@pytest.mark.parametrize("value", ["on", "remote_write", "remote_apply"])
def test_commits_that_wait_for_the_disk_are_accepted(made_dir: Path, value: str) -> None:
    """Proves that a stricter operator is not refused."""
    assert wrong_with(made_dir, {"synchronous_commit": value}) == []


def test_standby_is_refused(data_dir: Path) -> None:
    """Proves that a server which takes no writes is found before the first write fails."""
    server = EmbeddedPostgres(data_dir, settings=SMALL)
    server.start()
    server.stop()
    signal_file = data_dir / "postgres" / "standby.signal"
    signal_file.touch()
    server._run_as.own(signal_file)
    assert wrong_with(data_dir, {}) == ["in_recovery"]


def test_missing_checksums_are_refused_unless_the_operator_insists(data_dir: Path) -> None:
    """Proves that a cluster without page checksums needs the explicit override."""
    server = EmbeddedPostgres(data_dir, settings=SMALL)
    server.start()
    server.stop()
    program = cluster.binaries() / "pg_checksums"
    command = server._run_as.command(program, "--disable", "-D", data_dir / "postgres")
    subprocess.run(command, check=True, capture_output=True, timeout=HANGS_S)
    assert wrong_with(data_dir, {}) == ["data_checksums"]
    with server:
        facts = asyncio.run(facts_of(server.dsn()))
        assert findings(facts, allow_no_checksums=True) == []


async def facts_of(dsn: str) -> dict[str, str]:
    """The settings of the database behind an address."""
    connection = await asyncpg.connect(dsn, timeout=HANGS_S)
    try:
        return await read_facts(connection)
    finally:
        await connection.close()


def test_database_that_cannot_hold_every_name_is_refused(postgres: TestServer) -> None:
    """Proves that another encoding is found."""
    admin = postgres.server.dsn("postgres")
    sql(
        admin,
        "CREATE DATABASE plain TEMPLATE template0 ENCODING 'SQL_ASCII' "
        "LOCALE_PROVIDER libc LOCALE 'C'",
    )
    assert [each.setting for each in inspect(postgres.server.dsn("plain"))] == ["server_encoding"]
    sql(admin, "DROP DATABASE plain WITH (FORCE)")


def test_setting_of_a_database_counts_as_the_session_sees_it(
    postgres: TestServer, database: str
) -> None:
    """Proves that a default hidden on the database is found, and that the error names it."""
    sql(database, f"ALTER DATABASE {database_name(database)} SET synchronous_commit = off")

    async def run() -> None:
        connection = await asyncpg.connect(database, timeout=HANGS_S)
        try:
            await require_durable(connection)
        finally:
            await connection.close()

    with pytest.raises(
        UnsafeDatabaseError, match=r"synchronous_commit is 'off' and must be on, remote_write or"
    ):
        asyncio.run(run())


def database_name(dsn: str) -> str:
    """The name of the database in an address."""
    return dsn.split("@/", 1)[1].split("?", 1)[0]


def test_old_server_and_absent_settings_are_refused() -> None:
    """Proves that what cannot be shown to be right counts as wrong."""
    sound = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "zero_damaged_pages": "off",
        "ignore_checksum_failure": "off",
        "default_transaction_read_only": "off",
        "server_version_num": "150000",
        "server_encoding": "UTF8",
        "in_recovery": "off",
    }
    assert findings(sound) == []
    old = findings(sound | {"server_version_num": "140012"})
    assert [each.setting for each in old] == ["server_version_num"]
    assert sorted(each.setting for each in findings({})) == sorted(sound)
