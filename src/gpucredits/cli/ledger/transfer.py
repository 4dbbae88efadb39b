"""``gpucredits transfer`` and ``transfers``: move credits between accounts, and list what moved."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import PageAt, Session, Write, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.core.money import count
from gpucredits.wire.ledger.credit import TransferAnswer, TransferPage


@click.command(cls=Command)
@click.argument("source", metavar="FROM", type=values.account)
@click.argument("target", metavar="TO", type=values.account)
@click.argument("amount", type=values.amount)
@click.option(
    "--label",
    "metadata",
    type=values.label,
    multiple=True,
    help="A label such as team=nlp. May be given many times.",
)
@writes
def transfer(
    session: Session,
    source: str,
    target: str,
    amount: str,
    *,
    metadata: tuple[tuple[str, str], ...],
    write: Write,
) -> None:
    """Move AMOUNT unheld credits from one account to another.

    A claw-back is a transfer the other way round.
    """
    call = client_calls.transfer(source, target, amount, metadata=dict(metadata) or None, **write)
    session.run(call, show_transfer)


@click.command(cls=Command)
@click.argument("account", type=values.account)
@click.option("--tree", is_flag=True, help="Those of all accounts below it too.")
@click.option(
    "--label", "metadata", type=values.label, multiple=True, help="Only those with this label."
)
@click.option("--since", type=values.past, help="From this instant on: a date, or 7d (ago).")
@click.option("--until", type=values.past, help="Before this instant: a date, or 1d (ago).")
@pages
def transfers(
    session: Session,
    account: str,
    *,
    tree: bool,
    metadata: tuple[tuple[str, str], ...],
    since: datetime | None,
    until: datetime | None,
    page: PageAt,
    follow: bool,
) -> None:
    """Transfers to and from ACCOUNT, the latest first."""
    call = client_calls.transfer_page(
        account,
        tree=tree or None,
        metadata=dict(metadata) or None,
        since=since,
        until=until,
        **page,
    )
    shown = partial(show_transfers, below=output.look_below(account, tree=tree))
    session.run_pages(call, shown, items="transfers", follow=follow)


def show_transfers(page: TransferPage, *, below: str = "") -> None:
    """A page of transfers."""
    output.print_table(
        ["transfer", "at", "from", "to", ">amount", "labels"],
        [
            [
                row.transfer_id,
                output.instant(row.at),
                row.source,
                row.target,
                row.amount,
                output.labels(row.metadata),
            ]
            for row in page.transfers
        ],
        empty=f"No transfers{below}.",
    )


def show_transfer(answer: TransferAnswer) -> None:
    """What moved, lot by lot."""
    output.say(
        f"Moved {count(answer.amount, 'credit')} from {answer.source} to {answer.target}"
        f" ({answer.transfer_id})."
    )
    output.print_table(
        ["left grant", "arrived in", ">amount"],
        [[lot.from_grant_id, lot.to_grant_id, lot.amount] for lot in answer.lots],
        empty="",
    )
