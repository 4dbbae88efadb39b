"""``gpucredits budget``: an allowance for each period."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core import bounds
from gpucredits.core.duration import format_seconds
from gpucredits.wire.limits.budget import (
    NAME_DEFAULT,
    BudgetAnswer,
    BudgetsAnswer,
    BudgetTerms,
    PeriodsAnswer,
    RolloverName,
)
from gpucredits.wire.limits.quota import CalendarName

_name = click.option("--name", default=NAME_DEFAULT, show_default=True, help="Which budget.")


@click.group(cls=Group)
def budget() -> None:
    """Allowances for each day, week or month, issued by the clock."""


@budget.command("list")
@click.argument("account", type=values.account)
@calls
def list_budgets(session: Session, account: str) -> None:
    """The budgets of ACCOUNT and their open periods."""
    session.run(client_calls.budgets(account), show_budgets)


@budget.command("set")
@click.argument("account", type=values.account)
@click.argument("allowance", type=values.amount, required=False)
@_name
@click.option(
    "--per",
    "calendar",
    type=click.Choice(get_args(CalendarName)),
    help="The period. A budget without one has one period, until --ends.",
)
@click.option(
    "--zone", help="The time zone of the periods, such as Europe/Berlin. Of a new budget: UTC."
)
@click.option(
    "--starts",
    "starts_at",
    type=values.instant,
    help="When the first period begins. Of a new budget: at once.",
)
@click.option("--ends", "ends_at", type=values.instant, help="When the last period ends.")
@click.option(
    "--rollover",
    type=click.Choice(get_args(RolloverName)),
    help="What becomes of credits that are left. Of a new budget: none.",
)
@click.option("--rollover-cap", type=values.amount, help="The most credits that roll over.")
@click.option(
    "--rollover-for",
    "rollover_ms",
    type=values.duration,
    help="How long rolled-over credits last. Default: the next period.",
)
@click.option(
    "--priority", type=click.IntRange(0, bounds.PRIORITY_MAX), help="Lower is used first."
)
@click.option(
    "--warn",
    "warn_percent",
    type=click.IntRange(1, bounds.WARN_PERCENT_MAX),
    multiple=True,
    help="Warn when this percentage is used. May be given many times.",
)
@sets(
    {
        "per": "calendar",
        "zone": "zone",
        "ends": "ends_at",
        "rollover": "rollover",
        "rollover-cap": "rollover_cap",
        "rollover-for": "rollover_seconds",
        "priority": "priority",
        "warn": "warn_percent",
    }
)
def set_budget(  # noqa: PLR0913  # one argument for each option
    session: Session,
    account: str,
    allowance: str | None,
    *,
    name: str,
    calendar: CalendarName | None,
    zone: str | None,
    starts_at: datetime | None,
    ends_at: datetime | None,
    rollover: RolloverName | None,
    rollover_cap: str | None,
    rollover_ms: int | None,
    priority: int | None,
    warn_percent: tuple[int, ...],
    write: Set,
) -> None:
    """Give ACCOUNT an ALLOWANCE for each period, or change what is given of its budget.

    A budget that is open changes from its next period on. What is not given stays as it is.
    """
    if write["replace"]:
        _check_whole(allowance, calendar, ends_at, rollover, rollover_ms)
    if rollover is not None and (rollover == "capped") is not (rollover_cap is not None):
        raise click.UsageError("--rollover-cap goes with --rollover capped: give both or neither.")
    if rollover == "none" and rollover_ms is not None:
        raise click.UsageError("--rollover-for goes with --rollover all or capped.")
    call = client_calls.set_budget(
        account,
        allowance,
        name=name,
        calendar=calendar,
        zone=zone,
        starts_at=starts_at,
        ends_at=ends_at,
        rollover=rollover,
        rollover_cap=rollover_cap,
        rollover_seconds=values.whole_seconds(rollover_ms, "--rollover-for"),
        priority=priority,
        warn_percent=warn_percent or None,
        **write,
    )
    session.run(call, show_budget)


def _check_whole(
    allowance: str | None,
    calendar: CalendarName | None,
    ends_at: datetime | None,
    rollover: RolloverName | None,
    rollover_ms: int | None,
) -> None:
    """Say before anything is sent what a whole budget needs."""
    if allowance is None:
        raise click.UsageError("A whole budget has an allowance: give ALLOWANCE with --replace.")
    if calendar is None and ends_at is None:
        raise click.UsageError("A budget has periods or an end: give --per or --ends.")
    if rollover in (None, "none") and rollover_ms is not None:
        raise click.UsageError("--rollover-for goes with --rollover all or capped.")
    if calendar is None and rollover not in (None, "none") and rollover_ms is None:
        raise click.UsageError("Without --per there is no next period: give --rollover-for.")


@budget.command("end")
@click.argument("account", type=values.account)
@_name
@writes
def end_budget(session: Session, account: str, *, name: str, write: Write) -> None:
    """Let no further period begin; the one that is open runs to its end."""
    session.run(client_calls.end_budget(account, name, **write), show_budget)


@budget.command("periods")
@click.argument("account", type=values.account)
@_name
@pages
def list_periods(session: Session, account: str, *, name: str, page: PageAt, follow: bool) -> None:
    """The periods of a budget, the latest first."""
    call = client_calls.period_page(account, name, **page)
    session.run_pages(call, show_periods, items="periods", follow=follow)


def show_budget(answer: BudgetTerms) -> None:
    """A budget as it was set."""
    output.print_facts(
        [
            ("budget", answer.name),
            ("account", answer.account),
            ("allowance", f"{answer.allowance} {_rhythm(answer)}"),
            ("rollover", _rollover(answer)),
            ("priority", str(answer.priority)),
            ("warns at", " ".join(f"{percent} %" for percent in answer.warn_percent)),
            ("next period", output.instant(answer.next_at) or "none"),
            ("ends", output.instant(answer.ends_at)),
        ]
    )


def show_budgets(answer: BudgetsAnswer) -> None:
    """All budgets of an account."""
    output.print_table(
        [
            "budget",
            "allowance",
            ">issued",
            ">used",
            ">left",
            ">rolled in",
            "warned",
            "period ends",
            "next",
        ],
        [_row(row) for row in answer.budgets],
        empty="No budgets.",
    )


def show_periods(answer: PeriodsAnswer) -> None:
    """A page of periods."""
    output.print_table(
        ["from", "to", ">issued", ">used", ">left", ">rolled in", ">rolled out", "grant"],
        [
            [
                output.instant(row.starts_at),
                output.instant(row.ends_at),
                row.issued,
                row.used,
                row.left,
                row.rolled_in,
                row.rolled_out,
                row.grant_id,
            ]
            for row in answer.periods
        ],
        empty="No periods.",
    )


def _row(row: BudgetAnswer) -> list[str]:
    period = row.period
    numbers = ["", "", "", "", "", ""]
    if period is not None:
        ends = output.instant(period.ends_at)
        warned = f"at {period.warned_percent} %" if period.warned_percent else ""
        numbers = [period.issued, period.used, period.left, period.rolled_in, warned, ends]
    allowance = f"{row.allowance} {_rhythm(row)}"
    return [row.name, allowance, *numbers, output.instant(row.next_at) or "none"]


def _rhythm(terms: BudgetTerms) -> str:
    return f"per {terms.calendar} ({terms.zone})" if terms.calendar else "once"


def _rollover(terms: BudgetTerms) -> str:
    if terms.rollover == "none":
        return ""
    text = f"up to {terms.rollover_cap}" if terms.rollover == "capped" else "all"
    if terms.rollover_seconds:
        text += f", for {format_seconds(terms.rollover_seconds)}"
    return text
