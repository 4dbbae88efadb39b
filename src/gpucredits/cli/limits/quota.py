"""``gpucredits quota``: how much an account may run at once, or spend in a window or on a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import Session, Write, calls, writes
from gpucredits.client import calls as client_calls
from gpucredits.core import bounds
from gpucredits.core.money import count, count_of
from gpucredits.wire.limits.quota import (
    CalendarName,
    DimensionName,
    QuotaAnswer,
    QuotasAnswer,
    QuotaTerms,
)

DIMENSIONS: dict[str, DimensionName] = {
    name.replace("_", "-"): name for name in get_args(DimensionName)
}


@click.group(cls=Group)
def quota() -> None:
    """Limits on GPUs, on jobs, and on credits per window or job."""


def window_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which quota of an account is meant."""
    options: list[Callable[[Any], Any]] = [
        click.option("--type", "gpu_type", type=values.gpu_type, help="For this type of GPU only."),
        click.option(
            "--per",
            "calendar",
            type=click.Choice(get_args(CalendarName)),
            help="The window of credits-per-window.",
        ),
        click.option(
            "--zone", help="The time zone of the window, such as Europe/Berlin. Default: UTC."
        ),
        click.option(
            "--hours",
            "rolling_hours",
            type=click.IntRange(1, bounds.ROLLING_HOURS_MAX),
            help="The window is this many past hours.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@quota.command("list")
@click.argument("account", type=values.account)
@calls
def list_quotas(session: Session, account: str) -> None:
    """The quotas of ACCOUNT and how they stand."""
    session.run(client_calls.quotas(account), show_quotas)


@quota.command("set")
@click.argument("account", type=values.account)
@click.argument("dimension", type=click.Choice(list(DIMENSIONS)))
@click.argument("limit", type=values.amount)
@window_options
@writes
def set_quota(  # noqa: PLR0913  # one argument for each option
    session: Session,
    account: str,
    dimension: str,
    limit: str,
    *,
    gpu_type: str | None,
    calendar: CalendarName | None,
    zone: str | None,
    rolling_hours: int | None,
    write: Write,
) -> None:
    """Limit ACCOUNT and all below it to LIMIT; setting the same quota again changes its limit."""
    check_window(DIMENSIONS[dimension], calendar, rolling_hours)
    call = client_calls.set_quota(
        account,
        DIMENSIONS[dimension],
        limit,
        gpu_type=gpu_type,
        calendar=calendar,
        zone=zone,
        rolling_hours=rolling_hours,
        **write,
    )
    session.run(call, show_quota)


@quota.command("end")
@click.argument("account", type=values.account)
@click.argument("quota_id")
@writes
def end_quota(session: Session, account: str, quota_id: str, *, write: Write) -> None:
    """Take a quota away."""
    session.run(client_calls.end_quota(account, quota_id, **write), show_quota)


def check_window(
    dimension: DimensionName | None, calendar: str | None, rolling_hours: int | None
) -> None:
    """Say before anything is sent which window a quota needs."""
    windows = (calendar is not None) + (rolling_hours is not None)
    if dimension == "credits_per_window" and windows != 1:
        raise click.UsageError("credits-per-window needs a window: give either --per or --hours.")
    if dimension != "credits_per_window" and windows:
        raise click.UsageError("--per and --hours are for credits-per-window only.")


def title(terms: QuotaTerms) -> str:
    """What a quota limits, on one line."""
    name = terms.dimension.replace("_", " ").replace("gpus", "GPUs")
    if terms.calendar:
        name = f"credits per {terms.calendar} ({terms.zone})"
    elif terms.rolling_hours:
        name = f"credits in {count(terms.rolling_hours, 'hour')}"
    return f"{name} on {terms.gpu_type}" if terms.gpu_type else name


def show_quota(answer: QuotaTerms) -> None:
    """One quota."""
    output.print_facts(
        [
            ("quota", answer.quota_id),
            ("account", answer.account),
            ("limits", title(answer)),
            ("to", count_of(answer.limit, answer.unit)),
            ("set", output.instant(answer.created_at)),
            ("set by", f"a key of {answer.set_by_scope} scope"),
            ("ended", output.instant(answer.ended_at)),
        ]
    )


def show_quotas(answer: QuotasAnswer) -> None:
    """All quotas of an account."""
    output.print_table(
        ["quota", "limits", ">cap", ">used", ">held", ">left", "unit", "resets", "set by"],
        [_row(row) for row in answer.quotas],
        empty="No quotas.",
    )


def _row(row: QuotaAnswer) -> list[str]:
    name = f"{title(row)} (boosted from {row.limit})" if row.cap != row.limit else title(row)
    return [
        row.quota_id,
        name,
        row.cap,
        row.used or "",
        row.held or "",
        row.left or "",
        row.unit,
        output.instant(row.resets_at),
        row.set_by_scope,
    ]
