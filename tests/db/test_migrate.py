"""Migrations: in order, once, whole or not at all, whoever else migrates and whatever is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from gpucredits.store.database.errors import Conflict
from gpucredits.store.database.migrate import MigrationError, migrate, read_migrations
from support import migrating_process
from support.postgres import TestServer, sql
from support.waiting import HANGS_S, until

PROGRAM = Path(migrating_process.__file__)
COUNT = "SELECT count(*) FROM schema_migrations"
SLOW_HERE = "SELECT pg_sleep(CASE current_setting('application_name') WHEN 'slow' THEN 60 END);"


@pytest.fixture
def empty(postgres: TestServer) -> str:
    """The address of a new database without any table."""
    name = f"empty_{next(postgres._numbers)}"
    sql(postgres.server.dsn("postgres"), f"CREATE DATABASE {name} TEMPLATE template0")
    return postgres.server.dsn(name)


def write(folder: Path, *texts: str) -> Path:
    """A folder with these migrations, numbered from one."""
    for number, text in enumerate(texts, start=1):
        (folder / f"{number:04d}_step.sql").write_text(text, encoding="utf-8")
    return folder


def apply(dsn: str, folder: Path) -> list[int]:
    """Migrate a database with a folder's files."""

    async def run() -> list[int]:
        connection = await asyncpg.connect(dsn, timeout=HANGS_S)
        try:
            return await migrate(connection, read_migrations(folder))
        finally:
            await connection.close()

    return asyncio.run(run())


def test_files_are_applied_once_and_in_order(empty: str, tmp_path: Path) -> None:
    """Proves that a second run does nothing and that a new file alone is added."""
    write(tmp_path, "CREATE TABLE a (n int); INSERT INTO a VALUES (1);", "UPDATE a SET n = n + 1;")
    assert apply(empty, tmp_path) == [1, 2]
    assert apply(empty, tmp_path) == []
    (tmp_path / "0003_more.sql").write_text("UPDATE a SET n = n * 10;", encoding="utf-8")
    assert apply(empty, tmp_path) == [3]
    assert sql(empty, "SELECT n FROM a") == 20


def test_replicas_that_start_at_once_apply_each_file_once(empty: str, tmp_path: Path) -> None:
    """Proves that many migrating sessions share the work without repeating or failing it."""
    write(tmp_path, "CREATE TABLE a (n int);", *["INSERT INTO a VALUES (1);"] * 5)

    async def run() -> list[int]:
        sessions = [await asyncpg.connect(empty, timeout=HANGS_S) for _ in range(8)]
        try:
            files = read_migrations(tmp_path)
            done = await asyncio.gather(*(migrate(session, files) for session in sessions))
        finally:
            for session in sessions:
                await session.close()
        return sorted(number for numbers in done for number in numbers)

    assert asyncio.run(run()) == [1, 2, 3, 4, 5, 6]
    assert sql(empty, "SELECT count(*) FROM a") == 5


def test_file_that_fails_leaves_nothing_of_itself(empty: str, tmp_path: Path) -> None:
    """Proves that the files before stay, the failing one is undone, and a repair continues."""
    write(tmp_path, "CREATE TABLE a (n int);", "CREATE TABLE b (n int); SELECT 1 / 0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        apply(empty, tmp_path)
    assert sql(empty, "SELECT to_regclass('b')") is None
    assert sql(empty, COUNT) == 1
    write(tmp_path, "CREATE TABLE a (n int);", "CREATE TABLE b (n int);")
    assert apply(empty, tmp_path) == [2]


@pytest.mark.parametrize("slow_file", [1, 2])
def test_process_killed_half_way_is_continued_by_the_next(
    empty: str, tmp_path: Path, slow_file: int
) -> None:
    """Proves that kill -9 inside a file leaves it undone, lets go of the lock, and can be rerun."""
    texts = ["CREATE TABLE a (n int);", "CREATE TABLE b (n int);"]
    texts[slow_file - 1] += SLOW_HERE
    write(tmp_path, *texts)
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with subprocess.Popen([sys.executable, str(PROGRAM), empty, str(tmp_path)]) as process:
        until(lambda: sql(empty, asleep))
        process.kill()
    assert apply(empty, tmp_path) == list(range(slow_file, 3))
    assert sql(empty, "SELECT to_regclass('a') IS NOT NULL AND to_regclass('b') IS NOT NULL")
    assert sql(empty, COUNT) == 2


def test_database_newer_than_the_program_is_refused(empty: str, tmp_path: Path) -> None:
    """Proves that an old program does not run on tables it does not know."""
    write(tmp_path, "SELECT 1;", "SELECT 2;")
    apply(empty, tmp_path)
    (tmp_path / "0002_step.sql").unlink()
    with pytest.raises(MigrationError, match="at migration 0002 and this program knows up to 0001"):
        apply(empty, tmp_path)


def test_file_changed_after_use_is_refused(empty: str, tmp_path: Path) -> None:
    """Proves that history cannot be edited unnoticed."""
    write(tmp_path, "SELECT 1;")
    apply(empty, tmp_path)
    write(tmp_path, "SELECT 1; -- harmless?")
    with pytest.raises(MigrationError, match="0001_step was applied with other content"):
        apply(empty, tmp_path)


def test_hole_in_the_record_is_refused(empty: str, tmp_path: Path) -> None:
    """Proves that a damaged record is not repaired by running an old file on newer tables."""
    write(tmp_path, "SELECT 1;", "SELECT 2;")
    apply(empty, tmp_path)
    sql(empty, "DELETE FROM schema_migrations WHERE number = 1")
    with pytest.raises(MigrationError, match="0001 is missing from the database's record"):
        apply(empty, tmp_path)


@pytest.mark.parametrize("text", ["COMMIT;", "select 1;\n  begin;", "START TRANSACTION;", "end ;"])
def test_file_with_a_transaction_of_its_own_is_refused(tmp_path: Path, text: str) -> None:
    """Proves that no file can commit half of itself."""
    with pytest.raises(MigrationError, match="has its own"):
        read_migrations(write(tmp_path, text))


def test_function_bodies_may_begin_and_end(empty: str, tmp_path: Path) -> None:
    """Proves that PL/pgSQL blocks are not mistaken for transactions."""
    body = "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$\nBEGIN\n  RETURN 7;\nEND $$;"
    apply(empty, write(tmp_path, body))
    assert sql(empty, "SELECT f()") == 7


@pytest.mark.parametrize("name", ["0003_gap.sql", "0001_twice.sql", "2_short.sql", "0002_Case.sql"])
def test_names_out_of_order_are_refused(tmp_path: Path, name: str) -> None:
    """Proves that gaps, doubles and misnamed files are found before anything runs."""
    write(tmp_path, "SELECT 1;")
    (tmp_path / name).write_text("SELECT 2;", encoding="utf-8")
    with pytest.raises(MigrationError, match="out of order"):
        read_migrations(tmp_path)


def test_missing_files_are_an_error_and_not_an_empty_schema(tmp_path: Path) -> None:
    """Proves that a badly packed installation is noticed."""
    with pytest.raises(MigrationError, match="installation is incomplete"):
        read_migrations(tmp_path / "absent")


def test_waiting_for_another_migration_is_bounded(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves that a stuck neighbour ends in a conflict that can be tried again, not in a hang."""
    monkeypatch.setattr("gpucredits.store.database.migrate.LOCK_TIMEOUT_MS", 50)
    files = read_migrations(write(tmp_path, "SELECT 1;"))

    async def run() -> None:
        stuck, waiting = [await asyncpg.connect(empty, timeout=HANGS_S) for _ in range(2)]
        try:
            async with stuck.transaction():
                await stuck.execute("SELECT pg_advisory_xact_lock(7305802614905113)")
                await migrate(waiting, files)
        finally:
            await waiting.close()
            await stuck.close()

    with pytest.raises(Conflict, match="lock timeout"):
        asyncio.run(run())
