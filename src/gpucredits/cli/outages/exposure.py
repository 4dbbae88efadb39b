"""``gpucredits exposure``: the most that live leases could still cost if no server answered."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import PageAt, Session, pages
from gpucredits.client import calls as client_calls
from gpucredits.wire.outages.exposure import ExposurePage


@click.command(cls=Command)
@click.argument("account", type=values.account, required=False)
@pages
def exposure(session: Session, account: str | None, *, page: PageAt, follow: bool) -> None:
    """Show the most that live leases could cost in an outage.

    These are the leases of ACCOUNT and all below it, or all leases.
    """
    call = client_calls.exposure_page(account=account, **page)
    session.run_pages(call, show_exposure, items="exposures", follow=follow)


def show_exposure(page: ExposurePage) -> None:
    """The total, and the accounts that pay for leases."""
    total = page.total
    output.print_facts(
        [
            ("exposure", total.total),
            ("held", f"{total.held}, {total.escrow} of it in escrow"),
            ("overdrafts", total.promised),
            ("grace", total.grace),
            ("leases", str(total.leases)),
            ("as of", output.instant(page.as_of)),
        ]
    )
    output.print_table(
        ["account", ">leases", ">held", ">escrow", ">overdrafts", ">grace", ">exposure"],
        [
            [row.account, str(row.leases), row.held, row.escrow, row.promised, row.grace, row.total]
            for row in page.exposures
        ],
        empty="No lease is live.",
    )
