"""``gpucredits limit``: every limit an account meets, and how fast it may authorise credits."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import Session, Write, calls, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core.money import count
from gpucredits.wire.limits.limits import LimitsAnswer
from gpucredits.wire.limits.rate_limit import RateLimitTerms


@click.group(cls=Group)
def limit() -> None:
    """Every limit of an account, and its credit rate limit."""


@limit.command("show")
@click.argument("account", type=values.account)
@calls
def show(session: Session, account: str) -> None:
    """Every limit that a job of ACCOUNT meets: the org's first, your own key's last."""
    session.run(client_calls.limits(account), show_limits)


@limit.command("set")
@click.argument("account", type=values.account)
@click.option("--capacity", type=values.amount, help="How many credits may be authorised at once.")
@click.option(
    "--refill",
    "refill_per_hour",
    type=values.amount,
    help="How many credits an hour the capacity is refilled by.",
)
@sets({})
def set_limit(
    session: Session,
    account: str,
    *,
    capacity: str | None,
    refill_per_hour: str | None,
    write: Set,
) -> None:
    """Set how fast ACCOUNT and all below it may authorise credits; what is not given stays."""
    if capacity is None and refill_per_hour is None:
        raise click.UsageError("Give --capacity, --refill or both.")
    call = client_calls.set_rate_limit(
        account,
        capacity=capacity,
        refill_per_hour=refill_per_hour,
        replace=write["replace"],
        key=write["key"],
        dry_run=write["dry_run"],
    )
    session.run(call, show_rate_limit)


@limit.command("end")
@click.argument("account", type=values.account)
@writes
def end_limit(session: Session, account: str, *, write: Write) -> None:
    """Take the rate limit of ACCOUNT away."""
    session.run(client_calls.end_rate_limit(account, **write), show_rate_limit)


def show_rate_limit(answer: RateLimitTerms) -> None:
    """A rate limit as it was set."""
    output.print_facts(
        [
            ("rate limit", answer.limit_id),
            ("account", answer.account),
            ("at once", count(answer.capacity, "credit")),
            ("refill", f"{count(answer.refill_per_hour, 'credit')}/hour"),
            ("set by", f"a key of {answer.set_by_scope} scope"),
            ("ended", output.instant(answer.ended_at)),
        ]
    )


def show_limits(answer: LimitsAnswer) -> None:
    """The overview: cap, used, left, resets at."""
    output.print_table(
        ["scope", "account", "limit", ">cap", ">used", ">left", "unit", "resets"],
        [
            [
                row.scope,
                row.account or "the whole system",
                row.name,
                row.cap or "",
                row.used or "",
                row.left or "",
                row.unit,
                output.instant(row.resets_at),
            ]
            for row in answer.limits
        ],
        empty="No limits.",
    )
