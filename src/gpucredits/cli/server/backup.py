"""``gpucredits backup``: copy the embedded database while it serves.

Owns: finding the database, refusing a foreign one, and showing what was copied.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import msgspec

from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.address import DATA_DIR_DEFAULT
from gpucredits.cli.terminal.failure import Undone
from gpucredits.cli.terminal.files import trouble
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.progress import MIB, ProgressLine
from gpucredits.cli.terminal.session import KEY_FILE
from gpucredits.client import Unavailable as Away
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.embedded.attach import address_in_use
from gpucredits.store.embedded.backup import BackupError, BackupInfo, require_free, take
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import DATABASE, EmbeddedPostgres

RATE_MIB_S_MAX = 1_024  # pg_basebackup's own bound
OWN_DATABASE = (
    "backup copies the embedded database only. Back up a PostgreSQL of your own with its own "
    "tools: pg_basebackup or your provider's snapshots for all of it, or "
    "`pg_dump --format=custom --dbname URL --file gpucredits.dump` for this one database. "
    "Check a restored copy with `gpucredits verify --database-url URL`."
)


@click.command(cls=Command)
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--data-dir",
    envvar="GPUCREDITS_DATA_DIR",
    show_envvar=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="The data directory to back up, whether its server runs or not "
    f"[default: {DATA_DIR_DEFAULT} if it is here].",
)
@click.option(
    "--database-url",
    envvar="GPUCREDITS_DATABASE_URL",
    show_envvar=True,
    help="Refused with the tools to use: a PostgreSQL of your own has its own backups.",
)
@click.option(
    "--max-rate",
    "rate_mib_s",
    type=click.IntRange(1, RATE_MIB_S_MAX),
    help="Copy at most this many MiB a second, to leave the disk to the server.",
)
@click.option(
    "--without-key",
    is_flag=True,
    help="Leave admin.key out: a restore then needs another admin's key or --new-admin-key.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was copied as JSON.")
def backup(
    *,
    target: Path,
    data_dir: Path | None,
    database_url: str | None,
    rate_mib_s: int | None,
    without_key: bool,
    as_json: bool,
) -> None:
    """Copy the embedded database to TARGET while the server runs.

    The copy holds every write that was acknowledged before the command began, and later ones up
    to the end of the copy. TARGET must be a new folder. Each file is checked against its checksum
    before TARGET appears.
    """
    if database_url is not None:
        raise click.UsageError(OWN_DATABASE)
    folder = data_dir or DATA_DIR_DEFAULT
    if not folder.is_dir():
        raise click.UsageError(f"There is no {folder} here. Name the data with --data-dir.")
    key = None if without_key else folder.absolute() / KEY_FILE
    try:
        require_free(target.absolute())
        with ending_in_order(), ProgressLine() as progress, serving(folder) as address:
            info = take(
                address, target.absolute(), admin_key=key, rate_mib_s=rate_mib_s, tell=progress
            )
    except (BackupError, EmbeddedPostgresError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise Undone(Away(trouble(error))) from error
    except Unavailable as error:
        raise Undone(Away(str(error).rstrip("."))) from error
    if as_json:
        click.echo(msgspec.json.encode({"target": str(target.absolute()), **plain(info)}))
    else:
        show(target, info)


@contextmanager
def serving(data_dir: Path) -> Iterator[str]:
    """The address of a data directory's database; it is started if no server runs."""
    if not (data_dir / "postgres").is_dir():
        raise EmbeddedPostgresError(f"there are no books in {data_dir}: name it with --data-dir")
    if address := address_in_use(data_dir, DATABASE):
        yield address
        return
    with EmbeddedPostgres(data_dir) as server:
        yield server.dsn()


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Clean up after SIGTERM and SIGHUP as after Ctrl-C."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def show(target: Path, info: BackupInfo) -> None:
    """Show what was copied, and what must be kept secret."""
    output.print_facts(
        [
            ("backup", str(target)),
            ("size", f"{info.bytes // MIB} MiB in {info.files} files, all checked"),
            ("holds", f"every write acknowledged before {output.instant(info.started_at)},"),
            ("", f"and later ones up to log position {info.end_lsn}"),
            ("admin key", "in the backup: keep it secret" if info.admin_key_sha256 else "left out"),
            ("restore", f"gpucredits restore {target} --data-dir NEW"),
        ]
    )


def plain(info: BackupInfo) -> dict[str, object]:
    """A backup's own description, for scripts."""
    facts = msgspec.to_builtins(info)
    if not isinstance(facts, dict):
        raise TypeError("a backup's facts are an object")
    return facts
