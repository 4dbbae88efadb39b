"""``gpucredits ledger`` and ``gpucredits price``."""

from __future__ import annotations

from typing import Any

import click

from gpucredits.cli.connection import Session, connected, paged
from gpucredits.client import calls


@click.command()
@click.argument("account")
@click.option("--tree", is_flag=True, help="Of the whole subtree.")
@click.option("--job", "job_id")
@click.option("--reservation", "reservation_id")
@click.option("--type", "type", help="Such as settle, reserve or transfer.")
@click.option("--since", metavar="INSTANT")
@click.option("--until", metavar="INSTANT")
@paged
@connected
def ledger(session: Session, *, page: dict[str, Any], **query: Any) -> None:
    """List entries as debit/credit pairs, the latest first."""
    answer = session.send(calls.list_entries(**query, **page))
    columns = ("entry", "effective", "type", "debit", "credit", "amount", "job")
    rows = [
        (
            each.entry_id,
            each.effective_at,
            each.type,
            f"{each.debit_account}:{each.debit_bucket}",
            f"{each.credit_account}:{each.credit_bucket}",
            each.amount,
            each.job_id,
        )
        for each in answer.entries
    ]
    session.show_list(answer, columns, rows, more=answer.next_cursor)


@click.group()
def price() -> None:
    """Set and list prices."""


@price.command("set")
@click.argument("gpu_type")
@click.argument("credits_per_gpu_hour")
@click.option("--region")
@click.option("--effective-from", metavar="INSTANT")
@click.option("--account", help="A discount for this account and those below it.")
@click.option("--idempotency-key")
@connected
def set_(
    session: Session,
    *,
    gpu_type: str,
    credits_per_gpu_hour: str,
    idempotency_key: str | None,
    **fields: Any,
) -> None:
    """Add a version of a price; running jobs keep theirs."""
    answer = session.send(
        calls.set_price(gpu_type, credits_per_gpu_hour, key=idempotency_key, **fields)
    )
    facts = [
        ("price", answer.price_id),
        ("type", answer.gpu_type),
        ("region", answer.region),
        ("per GPU-hour", answer.credits_per_gpu_hour),
        ("from", answer.effective_from),
        ("for", answer.account or "everybody"),
    ]
    session.show(answer, facts)


@price.command("list")
@click.option("--type", "gpu_type")
@click.option("--region")
@click.option("--account")
@paged
@connected
def list_(session: Session, *, page: dict[str, Any], **query: Any) -> None:
    """List versions of prices, the newest first."""
    answer = session.send(calls.list_prices(**query, **page))
    columns = ("price", "type", "region", "amount per GPU-hour", "from", "for")
    rows = [
        (
            each.price_id,
            each.gpu_type,
            each.region,
            each.credits_per_gpu_hour,
            each.effective_from,
            each.account or "everybody",
        )
        for each in answer.prices
    ]
    session.show_list(answer, columns, rows, more=answer.next_cursor)
