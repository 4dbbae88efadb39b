"""``gpucredits transfer``: move credits between accounts of one org."""

from __future__ import annotations

import click

from gpucredits.cli import output, values
from gpucredits.cli.session import Session, Write, writes
from gpucredits.client import credit as credit_calls
from gpucredits.core.wording import count
from gpucredits.wire.credit import TransferAnswer


@click.command()
@click.argument("source", metavar="FROM", type=values.account)
@click.argument("target", metavar="TO", type=values.account)
@click.argument("amount", type=values.amount)
@click.option(
    "--label", "metadata", type=values.label, multiple=True, help="May be given many times."
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
    """Move AMOUNT unheld credits; claw-back is the same the other way round."""
    call = credit_calls.transfer(source, target, amount, metadata=dict(metadata) or None, **write)
    session.run(call, show_transfer)


def show_transfer(answer: TransferAnswer) -> None:
    """What moved, lot by lot."""
    click.echo(
        f"Moved {count(answer.amount, 'credit')} from {answer.source} to {answer.target}"
        f" ({answer.transfer_id})."
    )
    output.print_table(
        ["left grant", "arrived in", ">amount"],
        [[lot.from_grant_id, lot.to_grant_id, lot.amount] for lot in answer.lots],
        empty="",
    )
