"""Bring a database's tables up to this version of the code.

Owns the order, atomicity and record of the numbered SQL files. It must not know what is in them.

Each file runs in one transaction together with its record, so a kill at any point leaves it either
done or not begun, and running again continues. Every transaction first takes one advisory lock and
looks again at what is recorded: any number of replicas may start at once, also through a
connection pooler, since nothing outlives a transaction.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucredits.store.database.errors import driver_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

MIGRATIONS = Path(__file__).with_name("migrations")
FILE_NAME = re.compile(r"(?P<number>[0-9]{4})_(?P<name>[a-z0-9_]+)\.sql")
# Words that would end our transaction half-way. PL/pgSQL's BEGIN has neither ; nor these after it.
OWN_TRANSACTION = re.compile(
    r"^\s*(commit|rollback|end\s*;|start\s+transaction|begin\s*(;|work|transaction|isolation))",
    re.IGNORECASE | re.MULTILINE,
)
LOCK_KEY = 7_305_802_614_905_113  # any number that no other program locks
LOCK_TIMEOUT_MS = 120_000
STATEMENT_TIMEOUT_MS = 1_800_000
CLIENT_CHECK_MS = 500  # so that the server lets go soon after a migrating process was killed
RECORD_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number integer PRIMARY KEY CHECK (number > 0),
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


class MigrationError(Exception):
    """The files and the database do not fit together; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered SQL file."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """What is recorded, so that a file edited after use is noticed."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


async def migrate(
    connection: Connection[Any] | PoolConnectionProxy[Any], migrations: Sequence[Migration]
) -> list[int]:
    """Apply what is missing, in order; the numbers that this call applied."""
    applied: list[int] = []
    with driver_errors():
        while (number := await apply_next(connection, migrations)) is not None:
            applied.append(number)
    return applied


def read_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """The files of a folder in order: 0001, 0002 and so on without a gap."""
    paths = sorted(folder.glob("*.sql")) if folder.is_dir() else []
    if not paths:
        raise MigrationError(f"no migrations in {folder}: the installation is incomplete")
    migrations = []
    for expected, path in enumerate(paths, start=1):
        match = FILE_NAME.fullmatch(path.name)
        if match is None or int(match["number"]) != expected:
            raise MigrationError(
                f"{path.name} is out of order: expected {expected:04d}_lower_case_name.sql here"
            )
        sql = path.read_text(encoding="utf-8")
        if found := OWN_TRANSACTION.search(sql):
            raise MigrationError(
                f"{path.name} has its own {found[0].strip()!r}: each file runs in one "
                "transaction that the runner begins and commits"
            )
        migrations.append(Migration(number=expected, name=match["name"], sql=sql))
    return migrations


async def apply_next(
    connection: Connection[Any] | PoolConnectionProxy[Any], migrations: Sequence[Migration]
) -> int | None:
    """Apply the first missing migration in one transaction; None when there is none."""
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('lock_timeout', $1, true),"
            " set_config('statement_timeout', $2, true),"
            " set_config('client_connection_check_interval', $3, true)",
            str(LOCK_TIMEOUT_MS),
            str(STATEMENT_TIMEOUT_MS),
            str(CLIENT_CHECK_MS),
        )
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
        if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
            await connection.execute(RECORD_TABLE)
        rows = await connection.fetch("SELECT number, checksum FROM schema_migrations")
        recorded = {row["number"]: row["checksum"] for row in rows}
        require_fit(recorded, migrations)
        pending = next((each for each in migrations if each.number not in recorded), None)
        if pending is None:
            return None
        await connection.execute(pending.sql, timeout=STATEMENT_TIMEOUT_MS / 1000)
        await connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)",
            pending.number,
            pending.name,
            pending.checksum,
        )
        return pending.number


def require_fit(recorded: Mapping[int, str], migrations: Sequence[Migration]) -> None:
    """Refuse a database that newer or different files have shaped."""
    newest_here = len(migrations)
    if recorded and (newest := max(recorded)) > newest_here:
        raise MigrationError(
            f"the database is at migration {newest:04d} and this program knows up to "
            f"{newest_here:04d}: run a newer version of the program"
        )
    for migration in migrations:
        checksum = recorded.get(migration.number)
        if checksum is None and any(number > migration.number for number in recorded):
            raise MigrationError(
                f"migration {migration.number:04d} is missing from the database's record although "
                "later ones are there: restore the record or the database from a backup"
            )
        if checksum not in (None, migration.checksum):
            raise MigrationError(
                f"migration {migration.number:04d}_{migration.name} was applied with other "
                "content: put the file back as it was and write the change as a new migration"
            )
