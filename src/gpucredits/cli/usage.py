"""``gpucredits usage``: what an account paid for, and what its leases used."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import click

from gpucredits.cli import output, values
from gpucredits.cli.session import PageAt, Session, pages
from gpucredits.client import usage as usage_calls
from gpucredits.wire.usage import GroupingName, UsagePage


@click.command()
@click.argument("account", type=values.account)
@click.option("--by", type=values.Words(get_args(GroupingName)), default="job", show_default=True)
@click.option("--since", type=values.past, help="From this instant on [default: 31 days ago].")
@click.option("--until", type=values.instant, help="Before this instant [default: now].")
@pages
def usage(
    session: Session,
    account: str,
    *,
    by: GroupingName,
    since: datetime | None,
    until: datetime | None,
    page: PageAt,
    follow: bool,
) -> None:
    """What ACCOUNT and all below it paid for, and the leases of their jobs."""
    call = usage_calls.usage_page(account, by=by, since=since, until=until, **page)
    session.run_pages(call, show_usage, items="leases", follow=follow)


def show_usage(page: UsagePage) -> None:
    """What was paid for in groups, then lease by lease."""
    output.print_table(
        [page.by.replace("_", " "), ">spent", ">leases"],
        [[row.name, row.spent, str(row.reservations)] for row in page.paid],
        empty=f"Nothing was paid for since {output.instant(page.since)}.",
    )
    if page.leases:
        click.echo()
        output.print_table(
            [
                "reservation",
                "account",
                "job",
                "GPUs",
                ">used",
                ">measured",
                ">late",
                ">settled",
                ">adjusted",
                ">refunded",
                ">charged",
            ],
            [
                [
                    row.reservation_id,
                    row.account,
                    row.job_id,
                    f"{row.gpu_count} x {row.gpu_type}",
                    values.format_ms(row.used_ms),
                    values.format_ms(row.measured_ms),
                    values.format_ms(row.late_ms),
                    row.settled,
                    row.adjusted,
                    row.refunded,
                    row.charged,
                ]
                for row in page.leases
            ],
            empty="",
        )
