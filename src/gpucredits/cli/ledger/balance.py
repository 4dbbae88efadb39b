"""``gpucredits balance``: what an account holds, now or at any past instant."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import Session, calls
from gpucredits.client import calls as client_calls
from gpucredits.core.money import MICROS_PER_CREDIT, format_credits
from gpucredits.wire.ledger.account import BalanceAnswer


@click.command(cls=Command)
@click.argument("account", type=values.account)
@click.option("--tree", is_flag=True, help="Sum the account and everything below it.")
@click.option("--at", type=values.past, help="As it was then: 2026-01-02T03:04:05Z, or 2h (ago).")
@click.option(
    "--known-at", type=values.past, help="With what had been recorded by then: a date, or 2h (ago)."
)
@calls
def balance(
    session: Session, account: str, *, tree: bool, at: datetime | None, known_at: datetime | None
) -> None:
    """What ACCOUNT can spend, holds for jobs, and has spent."""
    session.run(client_calls.balance(account, tree=tree, at=at, known_at=known_at), show_balance)


def show_balance(answer: BalanceAnswer) -> None:
    """One balance."""
    output.print_facts(
        [
            ("account", f"{answer.account} and all below" if answer.tree else answer.account),
            ("available", answer.available),
            ("held", answer.reserved),
            ("spent", answer.spent),
            ("credit limit", answer.credit_limit),
            ("left with credit", _left(answer)),
            ("not yet started", answer.pending if answer.pending != "0" else ""),
            ("overrun", answer.overrun if answer.overrun != "0" else ""),
            *(
                (f"through {each.account}", each.spendable or "if it has enough")
                for each in answer.spendable_through or ()
            ),
            ("as of", output.instant(answer.as_of)),
        ]
    )


def _left(answer: BalanceAnswer) -> str:
    """What a postpaid account can still spend: what it has and what it may go below zero."""
    if answer.credit_limit is None:
        return ""
    left = Decimal(answer.available) + Decimal(answer.credit_limit)  # sums may exceed any amount
    return format_credits(int(left * MICROS_PER_CREDIT))
