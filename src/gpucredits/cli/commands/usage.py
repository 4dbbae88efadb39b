"""``gpucredits usage``: what an account paid for, and what its leases used."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import PageAt, Session, pages
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_ms
from gpucredits.wire.usage import GroupingName, UsagePage


@click.command(cls=Command)
@click.argument("account", type=values.account)
@click.option("--by", type=values.Words(get_args(GroupingName)), default="job", show_default=True)
@click.option(
    "--since",
    type=values.past,
    help="From this instant on: a date, or 7d (ago) [default: 31 days].",
)
@click.option(
    "--until", type=values.past, help="Before this instant: a date, or 1d (ago) [default: now]."
)
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
    """What ACCOUNT and all below it paid for, and their leases."""
    call = client_calls.usage_page(account, by=by, since=since, until=until, **page)
    session.run_pages(call, show_usage, items=("paid", "leases"), follow=follow)


def part_shown(page: UsagePage) -> str:
    """How many groups the page shows, where there are more; jobs are not counted."""
    shown, groups = len(page.paid), page.total.groups
    if groups is None:
        return f", {shown} shown" if page.next_cursor else ""
    return "" if groups == shown else f", {shown} of {groups} shown"


def show_usage(page: UsagePage) -> None:
    """What was paid for in groups and in all, then lease by lease."""
    total = page.total
    by_job = page.by == "job"
    rows = [
        [row.name, row.spent, *([str(row.reservations)] if by_job else [])] for row in page.paid
    ]
    if rows:
        rows.append([f"in all{part_shown(page)}", total.spent, *([""] if by_job else [])])
    output.print_table(
        [page.by.replace("_", " "), ">spent", *([">leases"] if by_job else [])],
        rows,
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
                ">spent",
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
                    format_ms(row.used_ms),
                    format_ms(row.measured_ms),
                    format_ms(row.late_ms),
                    row.spent,
                    row.settled,
                    row.adjusted,
                    row.refunded,
                    row.charged,
                ]
                for row in page.leases
            ],
            empty="",
        )
