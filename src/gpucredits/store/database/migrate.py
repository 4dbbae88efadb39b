"""Bring a database's tables and functions up to this version of the code.

Owns the order, atomicity and record of the SQL files in store/sql. It must not know what is in
them. A new database is made by ``schema/`` as the tables are now. An older one is brought there by
``upgrades/``, one numbered file after another; the number of the last one is the number of the
schema. ``functions/`` holds what can be replaced: functions, views, triggers and fixed rows. A file
of it is applied again when its text has changed, and all of them after an upgrade.

Each step runs in one transaction together with its record, so a kill at any point leaves it either
done or not begun, and running again continues. Every transaction first takes one advisory lock and
looks again at what is recorded: any number of replicas may start at once, also through a
connection pooler, since nothing outlives a transaction.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpucredits.store.database.errors import driver_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

SQL: Final = Path(__file__).parent.parent / "sql"
UPGRADE_NAME: Final = re.compile(r"(?P<number>[0-9]{4})_(?P<name>[a-z0-9_]+)\.sql")
# Words that would end our transaction half-way. PL/pgSQL's BEGIN has neither ; nor these after it.
OWN_TRANSACTION: Final = re.compile(
    r"^\s*(commit|rollback|end\s*;|start\s+transaction|begin\s*(;|work|transaction|isolation))",
    re.IGNORECASE | re.MULTILINE,
)
COMMENT: Final = re.compile(r"--[^\n]*")
NEW: Final = "schema"  # the name that the record of a database made by schema/ has
LOCK_KEY = 7_305_802_614_905_113  # any number that no other program locks
LOCK_TIMEOUT_MS = 120_000
STATEMENT_TIMEOUT_MS = 1_800_000
CLIENT_CHECK_MS = 500  # so that the server lets go soon after a migrating process was killed
# Functions take this path with them (SET search_path FROM CURRENT): whoever calls them, with
# whatever path and temporary tables, they see the tables of the schema that they were made in.
FIXED_PATH = "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)"
RECORD_TABLES = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number integer CONSTRAINT schema_migrations_pkey PRIMARY KEY
        CONSTRAINT schema_migrations_number CHECK (number > 0),
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS schema_functions (
    file text CONSTRAINT schema_functions_pkey PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


class MigrationError(Exception):
    """The files and the database do not fit together; the message says how."""


@dataclass(frozen=True, slots=True)
class SqlFile:
    """A file, or all files of ``schema/`` as one."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """What is recorded, so that a file edited after use is noticed."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def meaning(self) -> str:
        """The checksum of the SQL that runs, without comments and line breaks."""
        plain = " ".join(COMMENT.sub("", self.sql).split())
        return hashlib.sha256(plain.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The files of a folder such as store/sql."""

    tables: SqlFile
    upgrades: Mapping[int, SqlFile]
    functions: tuple[SqlFile, ...]

    @property
    def number(self) -> int:
        """The upgrade whose result the tables are."""
        return max(self.upgrades, default=1)

    @property
    def oldest(self) -> int:
        """The oldest schema that can be upgraded."""
        return min(self.upgrades, default=2) - 1


@dataclass(frozen=True, slots=True)
class Applied:
    """A row of the record."""

    name: str
    checksum: str


async def migrate(
    connection: Connection[Any] | PoolConnectionProxy[Any], schema: Schema
) -> list[str]:
    """Apply what is missing, in order; the steps that this call applied."""
    applied: list[str] = []
    with driver_errors():
        while (step := await apply_next(connection, schema)) is not None:
            applied.append(step)
    return applied


def read_schema(folder: Path = SQL) -> Schema:
    """The files of a folder; the numbers of upgrades follow one another."""
    tables = read_files(folder / "schema")
    if not tables:
        raise MigrationError(f"no tables in {folder / 'schema'}: the installation is incomplete")
    upgrades: dict[int, SqlFile] = {}
    for each in read_files(folder / "upgrades"):
        match = UPGRADE_NAME.fullmatch(each.name)
        expected = max(upgrades, default=int(match["number"]) - 1 if match else 0) + 1
        if match is None or int(match["number"]) != expected:
            raise MigrationError(
                f"{each.name} is out of order: expected {expected:04d}_lower_case_name.sql here"
            )
        upgrades[expected] = each
    return Schema(
        tables=SqlFile(NEW, "\n".join(each.sql for each in tables)),
        upgrades=upgrades,
        functions=read_files(folder / "functions"),
    )


def read_files(folder: Path) -> tuple[SqlFile, ...]:
    """The SQL files of a folder by name; none may begin or end a transaction."""
    files = tuple(
        SqlFile(path.name, path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.sql"))
    )
    for each in files:
        if found := OWN_TRANSACTION.search(each.sql):
            raise MigrationError(
                f"{each.name} has its own {found[0].strip()!r}: each step runs in one "
                "transaction that the runner begins and commits"
            )
    return files


async def apply_next(
    connection: Connection[Any] | PoolConnectionProxy[Any], schema: Schema
) -> str | None:
    """Carry out the first step that is missing in one transaction; None when there is none."""
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('lock_timeout', $1, true),"
            " set_config('statement_timeout', $2, true),"
            " set_config('client_connection_check_interval', $3, true)",
            str(LOCK_TIMEOUT_MS),
            str(STATEMENT_TIMEOUT_MS),
            str(CLIENT_CHECK_MS),
        )
        await connection.execute(FIXED_PATH)
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
        if await connection.fetchval("SELECT to_regclass('schema_functions')") is None:
            await connection.execute(RECORD_TABLES)
        rows = await connection.fetch("SELECT number, name, checksum FROM schema_migrations")
        recorded = {row["number"]: Applied(row["name"], row["checksum"]) for row in rows}
        require_fit(recorded, schema)
        if not recorded:
            await run(connection, schema.tables, schema.number)
            return schema.tables.name
        following = max(recorded) + 1
        if following <= schema.number:
            await run(connection, schema.upgrades[following], following)
            return schema.upgrades[following].name
        return await apply_functions(connection, schema)


async def run(
    connection: Connection[Any] | PoolConnectionProxy[Any], step: SqlFile, number: int
) -> None:
    """Make or upgrade the tables; every function is then due to be applied anew."""
    await connection.execute(step.sql, timeout=STATEMENT_TIMEOUT_MS / 1000)
    await connection.execute("DELETE FROM schema_functions")
    await connection.execute(
        "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)",
        number,
        step.name.removesuffix(".sql"),
        step.meaning,
    )


async def apply_functions(
    connection: Connection[Any] | PoolConnectionProxy[Any], schema: Schema
) -> str | None:
    """Apply the files of functions that are not recorded as they are now, all at once."""
    rows = await connection.fetch("SELECT file, checksum FROM schema_functions")
    recorded = {row["file"]: row["checksum"] for row in rows}
    changed = [each for each in schema.functions if recorded.get(each.name) != each.checksum]
    for each in changed:
        await connection.execute(each.sql, timeout=STATEMENT_TIMEOUT_MS / 1000)
    await connection.executemany(
        "INSERT INTO schema_functions (file, checksum) VALUES ($1, $2)"
        " ON CONFLICT (file) DO UPDATE"
        " SET checksum = excluded.checksum, applied_at = clock_timestamp()",
        [(each.name, each.checksum) for each in changed],
    )
    return ", ".join(each.name for each in changed) or None


def require_fit(recorded: Mapping[int, Applied], schema: Schema) -> None:
    """Refuse a database that newer, much older or different files have shaped."""
    if not recorded:
        return
    newest = max(recorded)
    if newest > schema.number:
        raise MigrationError(
            f"the database is at schema {newest:04d} and this program knows up to "
            f"{schema.number:04d}: run a newer version of the program"
        )
    if newest < schema.oldest:
        raise MigrationError(
            f"the database is at schema {newest:04d} and this program upgrades from "
            f"{schema.oldest:04d} on: upgrade with an older version of the program first"
        )
    first = min(recorded)
    gaps = [number for number in range(first, newest) if number not in recorded]
    if first > 1 and recorded[first].name != NEW:
        gaps.insert(0, first - 1)
    if gaps:
        raise MigrationError(
            f"schema {gaps[0]:04d} is missing from the database's record although "
            "later ones are there: restore the record or the database from a backup"
        )
    for number, applied in recorded.items():
        require_same(number, applied, schema)


def require_same(number: int, applied: Applied, schema: Schema) -> None:
    """Refuse a database that was made from a file that was edited since."""
    if applied.name == NEW:
        meant = schema.tables if number == schema.number else None
    else:
        meant = schema.upgrades.get(number)
    if meant is not None and applied.checksum != meant.meaning:
        raise MigrationError(
            f"schema {number:04d} was made by other content of {meant.name}: put it back as it "
            "was and write the change as a new upgrade"
        )
