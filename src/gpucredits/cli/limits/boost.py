"""``gpucredits boost``: raise a limit for a while; it lapses by itself."""

from __future__ import annotations

from datetime import datetime

import click

from gpucredits.cli.limits.quota import DIMENSIONS, check_window, window_options
from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import Session, Write, calls, writes
from gpucredits.client import calls as client_calls
from gpucredits.core.money import count, count_of
from gpucredits.wire.limits.boost import BoostAnswer, BoostsAnswer, TargetName
from gpucredits.wire.limits.quota import CalendarName


@click.group(cls=Group)
def boost() -> None:
    """Limits raised for a while."""


@boost.command("list")
@click.argument("account", type=values.account)
@calls
def list_boosts(session: Session, account: str) -> None:
    """The boosts of ACCOUNT's limits that have not ended."""
    session.run(client_calls.boosts(account), show_boosts)


@boost.command("add")
@click.argument("account", type=values.account)
@click.argument("amount", type=values.amount)
@click.option("--until", "ends_at", type=values.instant, required=True, help="Such as 2d.")
@click.option(
    "--from",
    "starts_at",
    type=values.instant,
    help="When the boost begins, such as 2026-03-01. Default: at once.",
)
@click.option("--target", "target_id", help="The id of the quota or rate limit, or else:")
@click.option("--quota", "dimension", type=click.Choice(list(DIMENSIONS)), help="This quota.")
@click.option("--rate-limit", "is_rate_limit", is_flag=True, help="The rate limit.")
@click.option("--refill", "refill_per_hour", type=values.amount, help="More credits an hour too.")
@click.option("--note", help="Why.")
@window_options
@writes
def add_boost(  # noqa: PLR0913  # one argument for each option
    session: Session,
    account: str,
    amount: str,
    *,
    ends_at: datetime,
    starts_at: datetime | None,
    target_id: str | None,
    dimension: str | None,
    is_rate_limit: bool,
    refill_per_hour: str | None,
    note: str | None,
    gpu_type: str | None,
    calendar: CalendarName | None,
    zone: str | None,
    rolling_hours: int | None,
    write: Write,
) -> None:
    """Raise a limit of ACCOUNT by AMOUNT."""
    if (target_id is not None) + (dimension is not None) + is_rate_limit != 1:
        raise click.UsageError("Say which limit: give one of --target, --quota and --rate-limit.")
    named: TargetName | None = "rate_limit" if is_rate_limit else None
    if dimension is not None:
        check_window(DIMENSIONS[dimension], calendar, rolling_hours)
        named = DIMENSIONS[dimension]
    call = client_calls.add_boost(
        account,
        amount,
        ends_at=ends_at,
        starts_at=starts_at,
        refill_per_hour=refill_per_hour,
        target_id=target_id,
        dimension=named,
        gpu_type=gpu_type,
        calendar=calendar,
        zone=zone,
        rolling_hours=rolling_hours,
        note=note,
        **write,
    )
    session.run(call, show_boost)


@boost.command("end")
@click.argument("account", type=values.account)
@click.argument("boost_id")
@writes
def end_boost(session: Session, account: str, boost_id: str, *, write: Write) -> None:
    """Let a boost end now."""
    session.run(client_calls.end_boost(account, boost_id, **write), show_boost)


def show_boost(answer: BoostAnswer) -> None:
    """One boost."""
    output.print_facts(
        [
            ("boost", answer.boost_id),
            ("account", answer.account),
            ("raises", answer.target_id),
            ("by", _raise(answer)),
            ("from", output.instant(answer.starts_at)),
            ("until", output.instant(answer.ends_at)),
            ("note", answer.note),
            ("set by", f"a key of {answer.set_by_scope} scope"),
        ]
    )


def show_boosts(answer: BoostsAnswer) -> None:
    """All boosts of an account."""
    output.print_table(
        ["boost", "raises", "by", "from", "until", "note"],
        [
            [
                row.boost_id,
                row.target_id,
                _raise(row),
                output.instant(row.starts_at),
                output.instant(row.ends_at),
                row.note,
            ]
            for row in answer.boosts
        ],
        empty="No boosts.",
    )


def _raise(row: BoostAnswer) -> str:
    text = count_of(row.amount, row.unit)
    if row.refill_per_hour and row.refill_per_hour != "0":
        text += f", {count(row.refill_per_hour, 'credit')}/hour"
    return text
