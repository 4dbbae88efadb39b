"""``gpucredits grant``: issue lots of credits and see what remains of them."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.core import bounds
from gpucredits.wire.ledger.credit import GrantAnswer, GrantPage


@click.group(cls=Group)
def grant() -> None:
    """Lots of credits with a window, a priority and a source."""


@grant.command("issue")
@click.argument("account", type=values.account)
@click.argument("amount", type=values.amount)
@click.option(
    "--starts",
    "starts_at",
    type=values.instant,
    help="When the credits can be used, such as 2026-03-01. Default: at once.",
)
@click.option("--expires", "expires_at", type=values.instant, help="Such as 30d. Default: never.")
@click.option(
    "--priority", type=click.IntRange(0, bounds.PRIORITY_MAX), help="Lower is used first."
)
@click.option("--source", type=click.Choice(["allowance", "promo"]), help="Default: allowance.")
@click.option(
    "--label",
    "metadata",
    type=values.label,
    multiple=True,
    help="A label such as team=nlp. May be given many times.",
)
@writes
def issue(  # noqa: PLR0913  # one argument for each option
    session: Session,
    account: str,
    amount: str,
    *,
    starts_at: datetime | None,
    expires_at: datetime | None,
    priority: int | None,
    source: Literal["allowance", "promo"] | None,
    metadata: tuple[tuple[str, str], ...],
    write: Write,
) -> None:
    """Give AMOUNT credits to ACCOUNT."""
    call = client_calls.issue(
        account,
        amount,
        starts_at=starts_at,
        expires_at=expires_at,
        priority=priority,
        source=source,
        metadata=dict(metadata) or None,
        **write,
    )
    session.run(call, show_grant)


@grant.command("show")
@click.argument("grant_id")
@calls
def show(session: Session, grant_id: str) -> None:
    """One grant and what remains of it."""
    session.run(client_calls.grant(grant_id), show_grant)


@grant.command("list")
@click.argument("account", type=values.account)
@click.option("--tree", is_flag=True, help="Those of all accounts below it too.")
@click.option("--open", "open_", is_flag=True, help="Only those that have not ended.")
@pages
def list_grants(
    session: Session,
    account: str,
    *,
    tree: bool,
    open_: bool,
    page: PageAt,
    follow: bool,
) -> None:
    """The grants of ACCOUNT, the oldest first."""
    call = client_calls.grant_page(account, tree=tree or None, open=open_ or None, **page)
    shown = partial(show_grants, below=output.look_below(account, tree=tree))
    session.run_pages(call, shown, items="grants", follow=follow)


def show_grant(answer: GrantAnswer) -> None:
    """One grant."""
    output.print_facts(
        [
            ("grant", answer.grant_id),
            ("account", answer.account),
            ("amount", answer.amount),
            ("remaining", answer.remaining),
            ("state", answer.state),
            ("starts", output.instant(answer.starts_at)),
            ("expires", output.instant(answer.expires_at) or "never"),
            ("priority", str(answer.priority)),
            ("source", answer.source),
            ("from grant", answer.origin_grant_id),
            ("labels", output.labels(answer.metadata)),
        ]
    )


def show_grants(page: GrantPage, *, below: str = "") -> None:
    """A page of grants."""
    output.print_table(
        ["grant", "account", ">remaining", ">amount", "state", "source", ">priority", "expires"],
        [
            [
                row.grant_id,
                row.account,
                row.remaining,
                row.amount,
                row.state,
                row.source,
                str(row.priority),
                output.instant(row.expires_at) or "never",
            ]
            for row in page.grants
        ],
        empty=f"No grants{below}.",
    )
