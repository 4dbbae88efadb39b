"""``gpucredits verify``: check every rule of the ledger on a live database."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import click
import msgspec

from gpucredits.service.verify import Verification
from gpucredits.service.verify import verify as verify_database
from gpucredits.store.attach import attached
from gpucredits.store.durability import UnsafeDatabaseError
from gpucredits.store.errors import Unavailable
from gpucredits.store.pool import PoolOptions, open_pool
from gpucredits.store.run_as import EmbeddedPostgresError

EXIT_BROKEN: Final = 1
# One long look at everything; nobody else is kept waiting by it.
OPTIONS = PoolOptions(
    connections_max=2,
    statement_timeout_ms=3_600_000,
    command_timeout_s=3_700,
    idle_in_transaction_timeout_ms=3_600_000,
)


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("gpucredits-data"),
    show_default=True,
    envvar="GPUCREDITS_DATA_DIR",
    help="A data directory, whether its server runs or not.",
)
@click.option("--database-url", envvar="GPUCREDITS_DATABASE_URL", help="A PostgreSQL of your own.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def verify(*, data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """Check every rule; exit 1 and show the rows when one is broken."""
    source: AbstractContextManager[str] = (
        attached(data_dir) if database_url is None else nullcontext(database_url)
    )
    try:
        with source as dsn:
            result = asyncio.run(check(dsn))
    except (EmbeddedPostgresError, Unavailable, UnsafeDatabaseError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(result, enc_hook=str).decode())
    else:
        report(result)
    sys.exit(0 if result.is_clean else EXIT_BROKEN)


async def check(dsn: str) -> Verification:
    """Look at one moment of the database."""
    pool = await open_pool(dsn, OPTIONS)
    try:
        return await verify_database(pool)
    finally:
        await pool.close()


def report(result: Verification) -> None:
    """One line for each rule, and the rows of those that are broken."""
    broken = {finding.rule: finding for finding in result.findings}
    for rule in result.rules:
        finding = broken.get(rule)
        click.echo(f"{'ok' if finding is None else 'BROKEN':8}{rule}")
        if finding is not None:
            click.echo(f"        {finding.claim}")
            for row in finding.rows:
                shown = ", ".join(f"{name}={value}" for name, value in row.items())
                click.echo(f"        {shown}")
    verdict = "all hold" if result.is_clean else f"{len(broken)} broken"
    click.echo(f"{len(result.rules)} rules over {result.entries} entries: {verdict}")
