"""``gpucredits verify``: check every rule of the books on the live database.

Owns: finding the database, and showing the findings. The command reads the database itself, not the
API: an auditor need not trust the server that keeps the books.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click

from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.address import DATA_DIR_DEFAULT, address_in
from gpucredits.cli.terminal.failure import Undone
from gpucredits.cli.terminal.grammar import Command
from gpucredits.client import Unavailable as Away
from gpucredits.service.reads.verify import BrokenRule, Head, Verification
from gpucredits.service.reads.verify import verify as verify_books
from gpucredits.store.database.connections import PoolOptions, open_pool
from gpucredits.store.database.durability import UnsafeDatabaseError
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.database.primary import DatabaseAddressError
from gpucredits.store.embedded.attach import address_in_use
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import DATABASE, EmbeddedPostgres

HOUR_S = 3_600
# A check may read the whole ledger, which takes its time; a database that is away is soon known.
POOL = PoolOptions(
    connections_min=1,
    connections_max=2,
    connect_deadline_s=10.0,
    statement_timeout_ms=HOUR_S * 1_000,
    idle_in_transaction_timeout_ms=HOUR_S * 1_000,
    command_timeout_s=HOUR_S,
)


@click.command(cls=Command)
@click.option(
    "--data-dir",
    envvar="GPUCREDITS_DATA_DIR",
    show_envvar=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A local server's data, whether it runs or not "
    f"[default: {DATA_DIR_DEFAULT} if it is here].",
)
@click.option(
    "--database-url",
    envvar="GPUCREDITS_DATABASE_URL",
    show_envvar=True,
    help="A PostgreSQL of your own.",
)
@click.option(
    "--heads",
    "heads_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Chain heads of an earlier check: a ledger whose end was cut off no longer holds them.",
)
@click.option(
    "--export-heads",
    "export_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the chain heads to a file, to be kept elsewhere.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def verify(  # one argument for each option
    *,
    data_dir: Path | None,
    database_url: str | None,
    heads_path: Path | None,
    export_path: Path | None,
    as_json: bool,
) -> None:
    """Check the books: replay every entry, compare every balance.

    Exits with 1 when a rule is broken, and shows the rows that break it.
    """
    exported = read_heads(heads_path) if heads_path else []
    if data_dir is None and database_url is None and DATA_DIR_DEFAULT.is_dir():
        data_dir = DATA_DIR_DEFAULT
        require_meant(data_dir, os.environ.get("GPUCREDITS_URL"))
    if data_dir is None and database_url is None:
        raise click.UsageError("Give --data-dir or --database-url, to say which books to check.")
    try:
        result = asyncio.run(check(data_dir, database_url, exported))
    except (DatabaseAddressError, EmbeddedPostgresError, UnsafeDatabaseError) as error:
        raise click.UsageError(str(error)) from error
    except (Unavailable, OSError) as error:
        raise Undone(Away(str(error).rstrip("."))) from error
    if export_path:
        write_heads(export_path, result.heads)
    if as_json:
        plain = {"database": books(data_dir, database_url), **to_plain(result)}
        click.echo(json.dumps(plain, default=str))
    else:
        click.echo(f"Database: {books(data_dir, database_url)}.")
        show(result)
    if not result.is_clean:
        raise click.exceptions.Exit(output.EXIT_REFUSED)


def require_meant(data_dir: Path, url: str | None) -> None:
    """Refuse to check unnamed books while the environment names another server."""
    own = address_in(data_dir)
    if not url or own is None or url.rstrip("/") == own.rstrip("/"):
        return
    raise click.UsageError(
        f"GPUCREDITS_URL is {url}, and the server of {data_dir} is at {own}. Say which books to "
        "check: verify reads a database, not a server. Give --data-dir or --database-url."
    )


def books(data_dir: Path | None, database_url: str | None) -> str:
    """The address of the checked database, without its password."""
    if database_url is None:
        return f"embedded, in {(data_dir or Path()).resolve()}"
    parts = urlsplit(database_url)  # it was opened, so it is an address
    host = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", ["the host"])[0]
    return f"{parts.path.lstrip('/') or 'the default'} at {host}"


def write_heads(path: Path, heads: Sequence[Head]) -> None:
    """Keep the chain heads for a later check."""
    try:
        path.write_text(json.dumps([head._asdict() for head in heads], indent=1))
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror or error}."
        raise click.BadParameter(text, param_hint="--export-heads") from error


def read_heads(path: Path) -> list[Head]:
    """The chain heads of an earlier check."""
    try:
        return [Head(**head) for head in json.loads(path.read_bytes())]
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"{path} does not hold chain heads: {error}") from error


async def check(
    data_dir: Path | None, database_url: str | None, exported: Sequence[Head] = ()
) -> Verification:
    """Check the books of a database."""
    async with database(data_dir, database_url) as url:
        pool = await open_pool(url, POOL)
        try:
            return await verify_books(pool, exported=exported)
        finally:
            await pool.close()


@asynccontextmanager
async def database(data_dir: Path | None, database_url: str | None) -> AsyncIterator[str]:
    """The address of the database; an embedded one is started if it does not run."""
    if database_url is not None or data_dir is None:
        yield database_url or ""
        return
    if not (data_dir / "postgres").is_dir():
        raise EmbeddedPostgresError(f"there are no books in {data_dir}")
    if address := address_in_use(data_dir, DATABASE):
        yield address
        return
    server = EmbeddedPostgres(data_dir)
    try:
        yield await asyncio.to_thread(server.start)
    finally:
        await asyncio.to_thread(server.stop)


def show(result: Verification) -> None:
    """Show what was checked, and every broken rule with some of its rows."""
    for finding in result.findings:
        click.echo(f"BROKEN  {finding.rule}: {finding.claim}")
        columns = list(finding.rows[0]) if finding.rows else []
        rows = [[str(row[column]) for column in columns] for row in finding.rows]
        output.print_table(columns, rows, empty="")
    verdict = "all hold" if result.is_clean else f"{len(result.findings)} broken"
    entries = "1 entry" if result.entries == 1 else f"{result.entries} entries"
    click.echo(f"Checked {len(result.rules)} rules over {entries}: {verdict}.")


def to_plain(result: Verification) -> dict[str, object]:
    """The result for scripts."""
    return {
        "is_clean": result.is_clean,
        "entries": result.entries,
        "rules": list(result.rules),
        "findings": [finding_to_plain(finding) for finding in result.findings],
    }


def finding_to_plain(finding: BrokenRule) -> dict[str, object]:
    """One broken rule for scripts."""
    return {"rule": finding.rule, "claim": finding.claim, "rows": finding.rows}
