"""``gpucredits ledger``: the entries, as ordinary debit/credit pairs."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import PageAt, Session, pages
from gpucredits.client import calls as client_calls
from gpucredits.wire.ledger.entry import EntryPage, EntryTypeName


@click.command(cls=Command)
@click.argument("account", type=values.account, required=False)
@click.option("--tree", is_flag=True, help="Entries of all accounts below it too.")
@click.option("--job", "job_id", help="Only entries of this job.")
@click.option("--reservation", "reservation_id", help="Only entries of this lease.")
@click.option(
    "--type", "type_", type=click.Choice(get_args(EntryTypeName)), help="Only entries of this type."
)
@click.option("--since", type=values.past, help="From this instant on: a date, or 7d (ago).")
@click.option("--until", type=values.past, help="Before this instant: a date, or 1d (ago).")
@pages
def ledger(  # noqa: PLR0913  # one argument for each option
    session: Session,
    account: str | None,
    *,
    tree: bool,
    job_id: str | None,
    reservation_id: str | None,
    type_: EntryTypeName | None,
    since: datetime | None,
    until: datetime | None,
    page: PageAt,
    follow: bool,
) -> None:
    """Entries of ACCOUNT, the latest first."""
    call = client_calls.entry_page(
        account=account,
        tree=tree or None,
        job_id=job_id,
        reservation_id=reservation_id,
        type=type_,
        since=since,
        until=until,
        **page,
    )
    shown = partial(show_entries, below=output.look_below(account, tree=tree))
    session.run_pages(call, shown, items="entries", follow=follow)


def show_entries(page: EntryPage, *, below: str = "") -> None:
    """A page of entries."""
    output.print_table(
        ["entry", "effective", "type", "debit", "credit", ">amount", "grant", "job"],
        [
            [
                row.entry_id,
                output.instant(row.effective_at),
                row.type,
                _side(row.debit_account, row.debit_bucket),
                _side(row.credit_account, row.credit_bucket),
                row.amount,
                row.grant_id or "",
                row.job_id or "",
            ]
            for row in page.entries
        ],
        empty=f"No entries{below}.",
    )


def _side(account: str, bucket: str) -> str:
    return f"{account}:{bucket}" if bucket and bucket not in account else account
