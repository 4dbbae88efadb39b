"""Schema steps: in order, once, whole or not at all, whoever else migrates or is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from gpucredits.store.database.errors import Conflict
from gpucredits.store.database.migrate import MigrationError, migrate, read_schema
from support.engines.postgres import TestServer, sql
from support.servers import migrating_process
from support.waiting import HANGS_S, until

PROGRAM = Path(migrating_process.__file__)
COUNT = "SELECT count(*) FROM schema_migrations"
SLOW_HERE = "SELECT pg_sleep(CASE current_setting('application_name') WHEN 'slow' THEN 60 END);"
ONE = "CREATE TABLE a (n int);"


@pytest.fixture
def empty(postgres: TestServer) -> str:
    """The address of a new database without any table."""
    name = f"empty_{next(postgres._numbers)}"
    sql(postgres.server.dsn("postgres"), f"CREATE DATABASE {name} TEMPLATE template0")
    return postgres.server.dsn(name)


def write(folder: Path, tables: str, *upgrades: str, functions: str = "") -> Path:
    """A folder with a schema, upgrades from the second on, and a file of functions."""
    files = {"schema/tables.sql": tables}
    files |= {f"upgrades/{at:04d}_step.sql": text for at, text in enumerate(upgrades, start=2)}
    if functions:
        files["functions/all.sql"] = functions
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def apply(dsn: str, folder: Path) -> list[str]:
    """Migrate a database with a folder's files."""

    async def run() -> list[str]:
        connection = await asyncpg.connect(dsn, timeout=HANGS_S)
        try:
            return await migrate(connection, read_schema(folder))
        finally:
            await connection.close()

    return asyncio.run(run())


def test_upgrades_are_applied_once_and_in_order(empty: str, tmp_path: Path) -> None:
    """Proves that a second run does nothing and that a new upgrade alone is added."""
    assert apply(empty, write(tmp_path, f"{ONE} INSERT INTO a VALUES (2);")) == ["schema"]
    assert apply(empty, tmp_path) == []
    write(tmp_path, "SELECT 1 / 0;", "UPDATE a SET n = n + 1;", "UPDATE a SET n = n * 10;")
    assert apply(empty, tmp_path) == ["0002_step.sql", "0003_step.sql"]
    assert apply(empty, tmp_path) == []
    assert sql(empty, "SELECT n FROM a") == 30


def test_new_database_is_made_as_the_tables_are_now(empty: str, tmp_path: Path) -> None:
    """Proves that no upgrade runs on a database that already begins with its result."""
    assert apply(empty, write(tmp_path, ONE, "SELECT 1 / 0;")) == ["schema"]
    write(tmp_path, ONE, "SELECT 1 / 0;", "INSERT INTO a VALUES (7);")
    assert apply(empty, tmp_path) == ["0003_step.sql"]
    assert sql(empty, "SELECT n FROM a") == 7


def test_functions_are_applied_when_their_text_changes(empty: str, tmp_path: Path) -> None:
    """Proves that changed functions replace the old ones, and unchanged ones are left alone."""
    body = "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$\nBEGIN\n  {}\nEND $$;"
    write(tmp_path, ONE, functions=body.format("RETURN 7;"))
    assert apply(empty, tmp_path) == ["schema", "all.sql"]
    assert apply(empty, tmp_path) == []
    write(tmp_path, ONE, functions=body.format("RETURN 8;"))
    assert apply(empty, tmp_path) == ["all.sql"]
    assert sql(empty, "SELECT f()") == 8


def test_functions_are_applied_anew_after_an_upgrade(empty: str, tmp_path: Path) -> None:
    """Proves that an upgrade may drop what stands in its way: it is made again."""
    view = "CREATE OR REPLACE VIEW v AS SELECT n FROM a;"
    apply(empty, write(tmp_path, ONE, functions=view))
    write(tmp_path, "", "DROP VIEW v; ALTER TABLE a ALTER n TYPE bigint;", functions=view)
    assert apply(empty, tmp_path) == ["0002_step.sql", "all.sql"]
    assert sql(empty, "SELECT count(*) FROM v") == 0


def test_replicas_that_start_at_once_apply_each_step_once(empty: str, tmp_path: Path) -> None:
    """Proves that many migrating sessions share the work without repeating or failing it."""
    apply(empty, write(tmp_path, ONE))
    write(tmp_path, ONE, *["INSERT INTO a VALUES (1);"] * 5, functions="INSERT INTO a VALUES (9);")

    async def run() -> list[str]:
        sessions = [await asyncpg.connect(empty, timeout=HANGS_S) for _ in range(8)]
        try:
            files = read_schema(tmp_path)
            done = await asyncio.gather(*(migrate(session, files) for session in sessions))
        finally:
            for session in sessions:
                await session.close()
        return sorted(step for steps in done for step in steps)

    assert asyncio.run(run()) == [*(f"{number:04d}_step.sql" for number in range(2, 7)), "all.sql"]
    assert sql(empty, "SELECT count(*) FROM a") == 6


def test_step_that_fails_leaves_nothing_of_itself(empty: str, tmp_path: Path) -> None:
    """Proves that the steps before stay, the failing one is undone, and a repair continues."""
    apply(empty, write(tmp_path, ONE))
    write(tmp_path, ONE, "CREATE TABLE b (n int); SELECT 1 / 0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        apply(empty, tmp_path)
    assert sql(empty, "SELECT to_regclass('b')") is None
    assert sql(empty, COUNT) == 1
    write(tmp_path, ONE, "CREATE TABLE b (n int);")
    assert apply(empty, tmp_path) == ["0002_step.sql"]


@pytest.mark.parametrize("slow", ["schema", "0002_step.sql"])
def test_process_killed_half_way_is_continued_by_the_next(
    empty: str, tmp_path: Path, slow: str
) -> None:
    """Proves that kill -9 inside a step leaves it undone, lets go of the lock, and can be rerun."""
    if slow == "schema":
        write(tmp_path, f"{ONE} {SLOW_HERE}")
    else:
        apply(empty, write(tmp_path, ONE))
        write(tmp_path, ONE, f"CREATE TABLE b (n int); {SLOW_HERE}")
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with subprocess.Popen([sys.executable, str(PROGRAM), empty, str(tmp_path)]) as process:
        until(lambda: sql(empty, asleep))
        process.kill()
    assert apply(empty, tmp_path) == [slow]
    assert sql(empty, "SELECT to_regclass($1) IS NOT NULL", "a" if slow == "schema" else "b")


def test_database_newer_than_the_program_is_refused(empty: str, tmp_path: Path) -> None:
    """Proves that an old program does not run on tables it does not know."""
    apply(empty, write(tmp_path, ONE, "SELECT 2;", "SELECT 3;"))
    (tmp_path / "upgrades" / "0003_step.sql").unlink()
    with pytest.raises(MigrationError, match="at schema 0003 and this program knows up to 0002"):
        apply(empty, tmp_path)


def test_database_too_old_for_the_upgrades_is_refused(empty: str, tmp_path: Path) -> None:
    """Proves that a step which is no longer there is not left out."""
    apply(empty, write(tmp_path, ONE))
    write(tmp_path, ONE, "SELECT 2;", "SELECT 3;")
    (tmp_path / "upgrades" / "0002_step.sql").unlink()
    with pytest.raises(MigrationError, match="at schema 0001 and this program upgrades from 0002"):
        apply(empty, tmp_path)


@pytest.mark.parametrize("changed", ["schema/tables.sql", "upgrades/0002_step.sql"])
def test_step_changed_after_use_is_refused(empty: str, tmp_path: Path, changed: str) -> None:
    """Proves that history cannot be edited unnoticed, but that comments may be."""
    apply(empty, write(tmp_path, ONE))
    if changed.startswith("upgrades"):
        apply(empty, write(tmp_path, ONE, "SELECT 2;"))
    path = tmp_path / changed
    text = path.read_text(encoding="utf-8")
    path.write_text(f"-- said better\n{text}", encoding="utf-8")
    assert apply(empty, tmp_path) == []
    path.write_text(f"{text} SELECT 4;", encoding="utf-8")
    with pytest.raises(MigrationError, match=r"was made by other content of (schema|0002_step)"):
        apply(empty, tmp_path)


@pytest.mark.parametrize("lost", [1, 2])
def test_hole_in_the_record_is_refused(empty: str, tmp_path: Path, lost: int) -> None:
    """Proves that a damaged record is not repaired by running an old step on newer tables."""
    apply(empty, write(tmp_path, ONE))
    apply(empty, write(tmp_path, ONE, "SELECT 2;", "SELECT 3;"))
    sql(empty, "DELETE FROM schema_migrations WHERE number = $1", lost)
    with pytest.raises(MigrationError, match=f"{lost:04d} is missing from the database's record"):
        apply(empty, tmp_path)


@pytest.mark.parametrize("text", ["COMMIT;", "select 1;\n  begin;", "START TRANSACTION;", "end ;"])
def test_file_with_a_transaction_of_its_own_is_refused(tmp_path: Path, text: str) -> None:
    """Proves that no file can commit half of itself."""
    with pytest.raises(MigrationError, match="has its own"):
        read_schema(write(tmp_path, text))


@pytest.mark.parametrize("name", ["0004_gap.sql", "0002_twice.sql", "2_short.sql", "0003_Case.sql"])
def test_names_out_of_order_are_refused(tmp_path: Path, name: str) -> None:
    """Proves that gaps, doubles and misnamed upgrades are found before anything runs."""
    write(tmp_path, "SELECT 1;", "SELECT 2;")
    (tmp_path / "upgrades" / name).write_text("SELECT 2;", encoding="utf-8")
    with pytest.raises(MigrationError, match="out of order"):
        read_schema(tmp_path)


def test_missing_files_are_an_error_and_not_an_empty_schema(tmp_path: Path) -> None:
    """Proves that a badly packed installation is noticed."""
    with pytest.raises(MigrationError, match="installation is incomplete"):
        read_schema(tmp_path / "absent")


def test_waiting_for_another_migration_is_bounded(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves that a stuck neighbour ends in a conflict that can be tried again, not in a hang."""
    monkeypatch.setattr("gpucredits.store.database.migrate.LOCK_TIMEOUT_MS", 50)
    files = read_schema(write(tmp_path, "SELECT 1;"))

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
