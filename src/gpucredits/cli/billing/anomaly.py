"""``gpucredits anomaly``: hours of unusual spending, and the terms by which they are found."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, calls, pages
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.wire.billing.anomaly import AnomalyPage, AnomalyTermsAnswer


@click.group(cls=Group)
def anomaly() -> None:
    """Unusual spending."""


@anomaly.command("list")
@click.argument("account", type=values.account, required=False)
@pages
def list_anomalies(session: Session, account: str | None, *, page: PageAt, follow: bool) -> None:
    """The unusual hours of ACCOUNT and all below it, or of everything, the latest first."""
    call = client_calls.anomaly_page(account, **page)
    session.run_pages(call, show_anomalies, items="anomalies", follow=follow)


@anomaly.command("terms")
@click.argument("account", type=values.account)
@calls
def terms(session: Session, account: str) -> None:
    """When an hour of ACCOUNT is unusual."""
    session.run(client_calls.anomaly_terms(account), show_terms)


@anomaly.command("set")
@click.argument("account", type=values.account)
@click.option(
    "--ratio", "ratio_percent", type=int, help="Percent of the median hour [at first: 400]."
)
@click.option("--floor", type=values.amount, help="Credits that are never unusual [at first: 100].")
@click.option(
    "--auto-suspend/--no-auto-suspend",
    default=None,
    help="Suspend the account after an unusual hour.",
)
@sets({"ratio": "ratio_percent", "floor": "floor", "auto-suspend": "auto_suspend"})
def set_terms(
    session: Session,
    account: str,
    *,
    ratio_percent: int | None,
    floor: str | None,
    auto_suspend: bool | None,
    write: Set,
) -> None:
    """Change when an hour of ACCOUNT is unusual; what is not given stays as it is."""
    call = client_calls.set_anomaly_terms(
        account, ratio_percent=ratio_percent, floor=floor, auto_suspend=auto_suspend, **write
    )
    session.run(call, show_terms)


def show_terms(answer: AnomalyTermsAnswer) -> None:
    """The terms of an account."""
    set_by = answer.set_by_scope
    output.print_facts(
        [
            ("account", answer.account),
            ("unusual above", f"{answer.ratio_percent}% of the median hour, and {answer.floor}"),
            ("then", "suspend" if answer.auto_suspend else "tell"),
            ("set by", f"a key of {set_by} scope" if set_by else "nobody"),
        ]
    )


def show_anomalies(page: AnomalyPage) -> None:
    """A page of unusual hours."""
    output.print_table(
        ["anomaly", "account", "hour", ">spent", ">threshold", ">median", "action"],
        [
            [
                row.anomaly_id,
                row.account,
                output.instant(row.starts_at),
                row.observed,
                row.threshold,
                row.baseline,
                row.action,
            ]
            for row in page.anomalies
        ],
        empty="Nothing unusual.",
    )
