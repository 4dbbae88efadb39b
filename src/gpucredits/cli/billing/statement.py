"""``gpucredits statement``: what a month came to, and its payment."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.billing.statement import PaymentAnswer, StatementAnswer, StatementPage


@click.group(cls=Group)
def statement() -> None:
    """Months of accounts that pay later."""


@statement.command("list")
@click.argument("account", type=values.account, required=False)
@pages
def list_statements(session: Session, account: str | None, *, page: PageAt, follow: bool) -> None:
    """The statements of ACCOUNT, or of everybody, the latest first."""
    call = client_calls.statement_page(account, **page)
    session.run_pages(call, show_statements, items="statements", follow=follow)


@statement.command("show")
@click.argument("statement_id")
@calls
def show(session: Session, statement_id: str) -> None:
    """One statement."""
    session.run(client_calls.statement(statement_id), show_statement)


@statement.command("pay")
@click.argument("statement_id")
@click.argument("amount", type=values.amount)
@click.option("--reference", required=True, help="Your reference of the payment.")
@writes
def pay(session: Session, statement_id: str, amount: str, *, reference: str, write: Write) -> None:
    """A payment of AMOUNT credits for a statement has arrived."""
    call = client_calls.pay_statement(statement_id, amount, payment_reference=reference, **write)
    session.run(call, show_payment)


def show_statement(answer: StatementAnswer) -> None:
    """One statement."""
    output.print_facts(_facts(answer))


def _facts(answer: StatementAnswer) -> list[tuple[str, str | None]]:
    return [
        ("statement", answer.statement_id),
        ("account", answer.account),
        ("period", answer.period),
        ("opening", answer.opening),
        ("charges", answer.charges),
        ("payments", answer.payments),
        ("credits", answer.credits),
        ("closing", answer.closing),
        ("asks for", answer.amount),
        ("paid", answer.paid),
        ("outstanding", answer.outstanding),
        ("state", answer.state),
        ("due", output.instant(answer.due_at)),
    ]


def show_payment(answer: PaymentAnswer) -> None:
    """The statement after a payment, and what that means for the account."""
    output.print_facts(
        [
            *_facts(answer.statement),
            ("top-up", answer.topup.topup_id),
            ("account is", answer.sentence),
        ]
    )


def show_statements(page: StatementPage) -> None:
    """A page of statements."""
    output.print_table(
        ["statement", "account", "period", ">charges", ">asks for", ">paid", "state", "due"],
        [
            [
                row.statement_id,
                row.account,
                row.period,
                row.charges,
                row.amount,
                row.paid,
                row.state,
                output.instant(row.due_at),
            ]
            for row in page.statements
        ],
        empty="No statements.",
    )
