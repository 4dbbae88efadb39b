"""Corrections of what a lease has cost: ``refund``, ``adjust``."""

from __future__ import annotations

from decimal import Decimal

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import Session, Write, writes
from gpucredits.client import calls as client_calls
from gpucredits.core.money import count
from gpucredits.wire.ledger.correction import CorrectionAnswer


@click.command(cls=Command)
@click.argument("reservation_id")
@click.argument("amount", type=values.amount)
@click.option("--note", help="Why.")
@writes
def refund(
    session: Session, reservation_id: str, amount: str, *, note: str | None, write: Write
) -> None:
    """Give settled credits back to the grants that paid."""
    call = client_calls.refund(reservation_id, amount, note=note, **write)
    session.run(call, show_refund)


@click.command(cls=Command)
@click.argument("reservation_id")
@click.argument("amount", type=values.amount)
@click.option("--note", help="Why.")
@writes
def adjust(
    session: Session, reservation_id: str, amount: str, *, note: str | None, write: Write
) -> None:
    """Charge more for a lease than was settled."""
    call = client_calls.adjust(reservation_id, amount, note=note, **write)
    session.run(call, show_adjustment)


def show_refund(answer: CorrectionAnswer) -> None:
    """What was given back, lot by lot."""
    show_correction("Refunded", answer)


def show_adjustment(answer: CorrectionAnswer) -> None:
    """What was charged besides, lot by lot."""
    show_correction("Charged", answer)
    covered = sum(Decimal(lot.amount) for lot in answer.lots if lot.kind == "overrun")
    if covered:
        some = count(str(covered), "credit")
        output.say(
            f"The payer lacked {some} of it: the house has covered that (an overrun) and collects "
            "it from the payer's next credits.",
            err=True,
        )


def show_correction(verb: str, answer: CorrectionAnswer) -> None:
    """What was done in all, and lot by lot."""
    output.say(f"{verb} {count(answer.amount, 'credit')} for {answer.reservation_id}.")
    output.print_table(
        ["grant", ">amount"],
        [[lot.grant_id or lot.kind, lot.amount] for lot in answer.lots],
        empty="",
    )
