"""``gpucredits restore``: put a backup into a new data directory, and check its books.

Owns: the steps copy, checksums, recovery, tables, key and books, and the report on each.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import click

from gpucredits.cli.server.backup import ending_in_order, plain
from gpucredits.cli.server.verify import POOL, database, to_plain
from gpucredits.cli.server.verify import show as show_verification
from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.address import DATA_DIR_DEFAULT
from gpucredits.cli.terminal.failure import Undone
from gpucredits.cli.terminal.files import trouble
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.progress import MIB, ProgressLine
from gpucredits.cli.terminal.session import KEY_FILE
from gpucredits.client import Unavailable as Away
from gpucredits.service.access.admin_keys import add_admin_key
from gpucredits.service.reads.verify import Verification
from gpucredits.service.reads.verify import verify as verify_books
from gpucredits.store.database.connections import open_pool
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.database.migrate import MigrationError, migrate, read_schema
from gpucredits.store.embedded.backup import BackupError, BackupInfo
from gpucredits.store.embedded.restore import put_back
from gpucredits.store.embedded.run_as import EmbeddedPostgresError

OWN_DATABASE = (
    "restore fills a data directory for the embedded database only. Restore a PostgreSQL of your "
    "own with its own tools (`pg_restore --dbname URL gpucredits.dump` into an empty database), "
    "then run `gpucredits verify --database-url URL`."
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of the command."""

    source: Path
    data_dir: Path
    new_admin_key: bool
    skip_verify: bool


@click.command(cls=Command)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--data-dir",
    envvar="GPUCREDITS_DATA_DIR",
    show_envvar=True,
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA_DIR_DEFAULT,
    show_default=True,
    help="A new or empty directory for the data.",
)
@click.option(
    "--database-url",
    envvar="GPUCREDITS_DATABASE_URL",
    show_envvar=True,
    help="Refused with the tools to use: a PostgreSQL of your own has its own restore.",
)
@click.option(
    "--new-admin-key",
    is_flag=True,
    help="Write a new system admin's key to admin.key, for when every admin's key is lost.",
)
@click.option("--skip-verify", is_flag=True, help="Do not check the books after the copy.")
@click.option("--json", "as_json", is_flag=True, help="Print what was restored as JSON.")
def restore(  # one argument for each option
    *,
    source: Path,
    data_dir: Path,
    database_url: str | None,
    new_admin_key: bool,
    skip_verify: bool,
    as_json: bool,
) -> None:
    """Put a backup into a new data directory and check its books.

    A damaged backup is refused and nothing is written. A directory that has data or a running
    server is refused too. Exits with 1 when the backup is refused or the books do not hold.
    """
    if database_url is not None:
        raise click.UsageError(OWN_DATABASE)
    wishes = Wishes(source.absolute(), data_dir.absolute(), new_admin_key, skip_verify)
    try:
        with ending_in_order(), ProgressLine() as progress:
            info = put_back(
                wishes.source, wishes.data_dir, with_key=not new_admin_key, tell=progress
            )
            books = asyncio.run(finish(wishes, progress))
    except (BackupError, EmbeddedPostgresError, MigrationError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise Undone(Away(trouble(error))) from error
    except Unavailable as error:
        raise Undone(Away(str(error).rstrip("."))) from error
    show(wishes, info, books, as_json=as_json)
    if books is not None and not books.is_clean:
        raise click.exceptions.Exit(output.EXIT_REFUSED)


async def finish(wishes: Wishes, progress: ProgressLine) -> Verification | None:
    """Replay the backup's log, bring its tables up to date, and check its books."""
    progress("replaying the log")
    async with database(wishes.data_dir, None) as address:
        pool = await open_pool(address, POOL)
        try:
            async with pool.acquire() as connection:
                await migrate(connection, read_schema())
            if wishes.new_admin_key:
                await add_admin_key(pool, wishes.data_dir / KEY_FILE)
            if wishes.skip_verify:
                return None
            progress("checking the books")
            return await verify_books(pool)
        finally:
            await pool.close()


def show(wishes: Wishes, info: BackupInfo, books: Verification | None, *, as_json: bool) -> None:
    """Show what was restored, the admin key, and whether the books hold."""
    key_path = wishes.data_dir / KEY_FILE
    key = str(key_path) if key_path.exists() else None
    if as_json:
        facts = {"data_dir": str(wishes.data_dir), "admin_key": key, "backup": plain(info)}
        checked = None if books is None else to_plain(books)
        click.echo(json.dumps({**facts, "books": checked}, default=str))
        return
    output.print_facts(
        [
            ("data", str(wishes.data_dir)),
            ("size", f"{info.bytes // MIB} MiB in {info.files} files, all checked"),
            ("state of", output.instant(info.started_at)),
            ("admin key", key or "not in the backup: use an admin's key from before the backup"),
            ("serve", f"gpucredits serve --data-dir {wishes.data_dir}"),
        ]
    )
    if books is None:
        click.echo("The books were not checked: run gpucredits verify.")
    else:
        show_verification(books)
