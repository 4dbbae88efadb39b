"""``gpucredits price``: what a GPU-hour costs, from when on, and for whom."""

from __future__ import annotations

from datetime import datetime

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.billing.price import NewPriceAnswer, PriceAnswer, PricePage


@click.group(cls=Group)
def price() -> None:
    """Prices per GPU-hour; a running job keeps its price."""


@price.command("set")
@click.argument("gpu_type", type=values.gpu_type)
@click.argument("credits_per_gpu_hour", type=values.amount)
@click.option("--region", type=values.region, help="Default: default.")
@click.option(
    "--from",
    "effective_from",
    type=values.instant,
    help="When the price begins, such as 2026-03-01. Default: at once.",
)
@click.option("--to", "effective_to", type=values.instant, help="Its end. Default: none.")
@click.option(
    "--account", type=values.account, help="A discount for this account and all below it."
)
@writes
def set_price(
    session: Session,
    gpu_type: str,
    credits_per_gpu_hour: str,
    *,
    region: str | None,
    effective_from: datetime | None,
    effective_to: datetime | None,
    account: str | None,
    write: Write,
) -> None:
    """Set a new version of the price of GPU_TYPE."""
    call = client_calls.set_price(
        gpu_type,
        credits_per_gpu_hour,
        region=region,
        effective_from=effective_from,
        effective_to=effective_to,
        account=account,
        **write,
    )
    session.run(call, show_new_price)


@price.command("end")
@click.argument("gpu_type", type=values.gpu_type)
@click.option("--region", type=values.region, help="Default: default.")
@click.option(
    "--at",
    "effective_to",
    type=values.instant,
    help="When the price ends, such as 2026-03-01. Default: at once.",
)
@click.option("--account", type=values.account, help="End the discount of this account.")
@writes
def end_price(
    session: Session,
    gpu_type: str,
    *,
    region: str | None,
    effective_to: datetime | None,
    account: str | None,
    write: Write,
) -> None:
    """End the price of GPU_TYPE; jobs that run keep theirs, and later versions still begin."""
    call = client_calls.end_price(
        gpu_type, region=region, effective_to=effective_to, account=account, **write
    )
    session.run(call, show_price)


@price.command("list")
@click.option("--type", "gpu_type", type=values.gpu_type, help="Only this type of GPU.")
@click.option("--region", type=values.region, help="Only this region.")
@click.option("--account", type=values.account, help="Only discounts for this account.")
@pages
def list_prices(
    session: Session,
    *,
    gpu_type: str | None,
    region: str | None,
    account: str | None,
    page: PageAt,
    follow: bool,
) -> None:
    """Versions of prices, the newest first."""
    call = client_calls.price_page(gpu_type=gpu_type, region=region, account=account, **page)
    session.run_pages(call, show_prices, items="prices", follow=follow)


def show_price(answer: PriceAnswer) -> None:
    """One version."""
    output.print_facts(
        [
            ("price", answer.price_id),
            ("GPU type", answer.gpu_type),
            ("region", answer.region),
            ("per GPU-hour", answer.credits_per_gpu_hour),
            ("from", output.instant(answer.effective_from)),
            ("to", output.instant(answer.effective_to)),
            ("for", answer.account),
        ]
    )


def show_new_price(answer: NewPriceAnswer) -> None:
    """A version that was added, and the note on it."""
    show_price(answer)
    if answer.note:
        click.echo(answer.note)


def show_prices(page: PricePage) -> None:
    """A page of versions."""
    output.print_table(
        ["price", "GPU type", "region", ">per GPU-hour", "from", "to", "for", "state"],
        [
            [
                row.price_id,
                row.gpu_type,
                row.region,
                row.credits_per_gpu_hour,
                output.instant(row.effective_from),
                output.instant(row.effective_to),
                row.account or "everybody",
                row.state.replace("_", " "),
            ]
            for row in page.prices
        ],
        empty="No prices.",
    )
