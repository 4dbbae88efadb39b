"""``gpucredits topup``: payments on their way to becoming grants."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.ledger.credit import TopUpAnswer, TopUpPage, TopUpStatusName


@click.group(cls=Group)
def topup() -> None:
    """Payments; only a confirmed one makes a grant."""


@topup.command("create")
@click.argument("account", type=values.account)
@click.argument("amount", type=values.amount)
@click.option("--reference", required=True, help="Your reference of the payment.")
@click.option("--confirmed", is_flag=True, help="The payment has already arrived.")
@click.option("--expires", "expires_at", type=values.instant, help="When its credits expire.")
@click.option(
    "--label",
    "metadata",
    type=values.label,
    multiple=True,
    help="A label such as team=nlp. May be given many times.",
)
@writes
def create(
    session: Session,
    account: str,
    amount: str,
    *,
    reference: str,
    confirmed: bool,
    expires_at: datetime | None,
    metadata: tuple[tuple[str, str], ...],
    write: Write,
) -> None:
    """Record a payment of AMOUNT credits for ACCOUNT."""
    call = client_calls.create_topup(
        account,
        amount,
        payment_reference=reference,
        status="confirmed" if confirmed else None,
        expires_at=expires_at,
        metadata=dict(metadata) or None,
        **write,
    )
    session.run(call, show_topup)


@topup.command("list")
@click.argument("account", type=values.account)
@click.option(
    "--status", type=click.Choice(get_args(TopUpStatusName)), help="Only top-ups in this status."
)
@pages
def list_topups(
    session: Session,
    account: str,
    *,
    status: TopUpStatusName | None,
    page: PageAt,
    follow: bool,
) -> None:
    """The payments of ACCOUNT, the latest first."""
    call = client_calls.topup_page(account, status=status, **page)
    session.run_pages(call, show_topups, items="topups", follow=follow)


@topup.command("show")
@click.argument("topup_id")
@calls
def show(session: Session, topup_id: str) -> None:
    """One payment."""
    session.run(client_calls.topup(topup_id), show_topup)


@topup.command("confirm")
@click.argument("topup_id")
@writes
def confirm(session: Session, topup_id: str, *, write: Write) -> None:
    """The payment arrived: make its grant."""
    session.run(client_calls.confirm_topup(topup_id, **write), show_topup)


@topup.command("fail")
@click.argument("topup_id")
@writes
def fail(session: Session, topup_id: str, *, write: Write) -> None:
    """The payment will not arrive."""
    session.run(client_calls.fail_topup(topup_id, **write), show_topup)


@topup.command("reverse")
@click.argument("topup_id")
@writes
def reverse(session: Session, topup_id: str, *, write: Write) -> None:
    """The payment was taken back; what was spent of it becomes debt."""
    session.run(client_calls.reverse_topup(topup_id, **write), show_topup)


def show_topup(answer: TopUpAnswer) -> None:
    """One payment."""
    output.print_facts(
        [
            ("top-up", answer.topup_id),
            ("account", answer.account),
            ("amount", answer.amount),
            ("status", answer.status),
            ("reference", answer.payment_reference),
            ("grant", answer.grant_id),
            ("expires", output.instant(answer.expires_at) or "never"),
            ("labels", output.labels(answer.metadata)),
        ]
    )


def show_topups(page: TopUpPage) -> None:
    """A page of payments."""
    output.print_table(
        ["top-up", "account", ">amount", "status", "reference", "grant", "made"],
        [
            [
                row.topup_id,
                row.account,
                row.amount,
                row.status,
                row.payment_reference,
                row.grant_id or "",
                output.instant(row.created_at),
            ]
            for row in page.topups
        ],
        empty="No top-ups.",
    )
