"""``gpucredits usage``: what an account paid for, and what its leases used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import click

from gpucredits.cli.drawing import Bar, Chart, picture_option, svg
from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import PageAt, Session, pages
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_ms
from gpucredits.wire.billing.usage import GroupingName, UsagePage

SPENT: Final = "#2f6fbb"


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
@picture_option("Draw what was paid for into this SVG file, a bar for each group.")
@pages
def usage(
    session: Session,
    account: str,
    *,
    by: GroupingName,
    since: datetime | None,
    until: datetime | None,
    picture: Path | None,
    page: PageAt,
    follow: bool,
) -> None:
    """What ACCOUNT and all below it paid for, and their leases."""
    call = client_calls.usage_page(account, by=by, since=since, until=until, **page)
    shown = session.run_pages(call, show_usage, items=("paid", "leases"), follow=follow)
    if picture is not None:
        picture.write_text(drawn(shown), encoding="utf-8")
        if not session.as_json:
            output.say(f"Picture: {picture}", err=True)


def drawn(page: UsagePage) -> str:
    """What was paid for as bars; days stand in their order.

    Days without spending between them have empty bars, where the page shows all others.
    """
    spent = {row.name: row.spent for row in page.paid}
    names = list(spent)
    if page.by == "day":
        is_whole = page.total.groups == len(spent)
        names = all_days(spent) if is_whole else sorted(spent)
    bars = [Bar(name, float(spent.get(name, "0")), spent.get(name, "0")) for name in names]
    title = f"{page.account} and all below paid {page.total.spent} credits"
    time = f"{output.instant(page.since)} to {output.instant(page.until)}"
    by = page.by.replace("_", " ").replace("gpu", "GPU")
    chart = Chart(f"Credits by {by}{part_shown(page)}", bars, SPENT)
    return svg(title, time, [chart])


def all_days(days: Iterable[str]) -> list[str]:
    """The days from the first to the last of some."""
    known = sorted(date.fromisoformat(day) for day in days)
    if not known:
        return []
    return [str(known[0] + timedelta(count)) for count in range((known[-1] - known[0]).days + 1)]


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
    paid = sorted(page.paid, key=lambda row: row.name) if page.by == "day" else page.paid
    rows = [[row.name, row.spent, *([str(row.reservations)] if by_job else [])] for row in paid]
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
