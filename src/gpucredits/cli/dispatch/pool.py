"""``pool``: what there is of a type of GPU, and how it is shared."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.pool_place import at_pool
from gpucredits.cli.terminal.session import Session, Write, calls, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_ms, format_seconds
from gpucredits.core.money import count
from gpucredits.wire.dispatch.pool import (
    PoolAnswer,
    PoolList,
    ScopeName,
    SharesAnswer,
    UsageOrderName,
    WeightsAnswer,
)


@click.group(cls=Group)
def pool() -> None:
    """Pools of GPUs: capacity, policy and weights.

    A POOL is such as h100, h100/eu or nvidia.com/h100.
    """


@pool.command("list")
@calls
def list_pools(session: Session) -> None:
    """Every pool."""
    session.run(client_calls.pools(), show_pools)


@pool.command("show")
@at_pool
@calls
def show(session: Session, place: tuple[str, str]) -> None:
    """POOL as it was set, and how much of it is held."""
    with session.client() as client:
        reply = client.fetch(client_calls.pool(*place))
        held = None if session.as_json else client.fetch(client_calls.shares(*place)).value
    session.print(reply, lambda answer: show_pool(answer, held))


@pool.command("set")
@at_pool
@click.option(
    "--capacity",
    type=values.gpus,
    metavar="NUMBER",
    help="How many GPUs there are; 0 drains the pool. Without a capacity nobody waits.",
)
@click.option(
    "--cpu", type=click.IntRange(min=1), help="How many CPUs there are, if CPUs are scarce too."
)
@click.option(
    "--memory",
    type=click.IntRange(min=1),
    help="How much memory there is, in any unit that jobs use too.",
)
@click.option(
    "--preemption/--no-preemption",
    default=None,
    help="Stop jobs above their fair share for requests within theirs.",
)
@click.option("--grace", type=values.duration, help="The notice before such a stop. Default: 30s.")
@click.option(
    "--min-runtime",
    type=values.duration,
    help="Jobs younger than this are not stopped. Default: 5m.",
)
@click.option(
    "--backfill/--no-backfill",
    default=None,
    help="Let requests overtake the first one where that does not delay it.",
)
@click.option(
    "--hold-after",
    type=values.duration,
    help="Keep room for the first request after this time in the queue. Default: 1h.",
)
@click.option(
    "--priority-scope",
    type=click.Choice(get_args(ScopeName)),
    help="How far priority counts. Default: user.",
)
@click.option(
    "--usage-order",
    type=click.Choice(get_args(UsageOrderName)),
    help="What past use decides: nothing, ties, or who goes first. Default: ignored.",
)
@click.option("--half-life", type=values.duration, help="The time in which past use fades by half.")
@click.option(
    "--borrowing/--no-borrowing", default=None, help="Let orgs use idle GPUs above their share."
)
@click.option(
    "--window-max",
    type=values.duration,
    help="How long leases of the pool may last without a report.",
)
@sets(
    {
        "capacity": "capacity",
        "cpu": "resources.cpu",
        "memory": "resources.memory",
        "preemption": "policy.preemption",
        "grace": "policy.grace_seconds",
        "min-runtime": "policy.min_runtime_seconds",
        "backfill": "policy.backfill",
        "hold-after": "policy.hold_after_seconds",
        "priority-scope": "policy.priority_scope",
        "usage-order": "policy.usage_order",
        "half-life": "policy.half_life_seconds",
        "borrowing": "policy.borrowing",
        "window-max": "policy.window_max_seconds",
    }
)
def set_pool(
    session: Session,
    place: tuple[str, str],
    *,
    capacity: str | None,
    cpu: int | None,
    memory: int | None,
    write: Set,
    **settings: Any,
) -> None:
    """Make POOL, or change what is given of it; the rest stays as it is."""
    policy = {
        f"{name}_seconds" if name in _DURATIONS else name: _seconds(name, value)
        for name, value in settings.items()
        if value is not None
    }
    amounts = {"cpu": cpu, "memory": memory}
    resources = {name: amount for name, amount in amounts.items() if amount is not None}
    call = client_calls.set_pool(
        *place, capacity=capacity, resources=resources or None, policy=policy or None, **write
    )
    session.run(call, show_pool)


@pool.command("remove")
@at_pool
@writes
def remove(session: Session, place: tuple[str, str], *, write: Write) -> None:
    """Take POOL away: nobody waits for its capacity any more."""
    session.run(client_calls.remove_pool(*place, **write), show_removed)


@pool.command("weights")
@at_pool
@click.argument("given", metavar="[ACCOUNT=WEIGHT]...", nargs=-1, type=values.weight)
@click.option(
    "--no-borrowing", "kept", multiple=True, type=values.account, help="An org that may not borrow."
)
@click.option("--borrowing", "freed", multiple=True, type=values.account, help="One that may.")
@click.option("--replace", is_flag=True, help="Take away all weights that are not given.")
@click.option("--clear", is_flag=True, help="Take all weights away.")
@writes
def weights(
    session: Session,
    place: tuple[str, str],
    given: tuple[tuple[str, int], ...],
    *,
    kept: tuple[str, ...],
    freed: tuple[str, ...],
    replace: bool,
    clear: bool,
    write: Write,
) -> None:
    """Show the weights of POOL, or set those given and leave the others as they are."""
    if clear and (given or kept or freed):
        raise click.UsageError("--clear takes all weights away: give none, or use --replace.")
    if not (given or kept or freed or clear or replace):
        session.run(client_calls.weights(*place), show_weights)
        return
    rows: dict[str, dict[str, Any]] = {}
    for account, name, value in (
        *((account, "weight", weight) for account, weight in given),
        *((account, "may_borrow", False) for account in kept),
        *((account, "may_borrow", True) for account in freed),
    ):
        rows.setdefault(account, {"account": account})[name] = value
    send = client_calls.set_weights if clear or replace else client_calls.change_weights
    session.run(send(*place, weights=list(rows.values()), **write), show_weights)


_DURATIONS = frozenset({"grace", "min_runtime", "hold_after", "half_life", "window_max"})


def _seconds(name: str, value: Any) -> Any:
    if name not in _DURATIONS:
        return value
    if value % 1_000:
        raise click.BadParameter("must be whole seconds.", param_hint=f"--{name}")
    return value // 1_000


def show_pools(answer: PoolList) -> None:
    """Pools in a table."""
    output.print_table(
        ["pool", ">capacity", ">cpu", ">memory", "preemption", "borrowing", "backfill"],
        [
            [
                f"{row.gpu_type}/{row.region}",
                "no limit" if row.capacity is None else str(row.capacity),
                str(row.resources.cpu or ""),
                str(row.resources.memory or ""),
                f"{format_seconds(row.policy.grace_seconds)} notice"
                if row.policy.preemption
                else "no",
                "yes" if row.policy.borrowing else "no",
                "yes" if row.policy.backfill else "no",
            ]
            for row in answer.pools
        ],
        empty="No pools: nobody waits for capacity.",
    )


def show_pool(answer: PoolAnswer, shares: SharesAnswer | None = None) -> None:
    """One pool, and what is held of it where that is known."""
    policy = answer.policy
    output.print_facts(
        [
            ("pool", f"{answer.gpu_type}/{answer.region}"),
            ("capacity", _capacity(answer.capacity)),
            ("held", "" if shares is None else _held(shares)),
            ("CPUs", str(answer.resources.cpu or "")),
            ("memory", str(answer.resources.memory or "")),
            ("preemption", _preemption(policy.preemption, policy.grace_seconds)),
            ("minimum run time", _young(policy.min_runtime_seconds)),
            ("backfill", "yes" if policy.backfill else "no"),
            ("room kept for the first", _kept(policy.hold_after_seconds)),
            ("priority", f"within each {policy.priority_scope}"),
            ("past use", _past(policy.usage_order, policy.half_life_seconds)),
            ("borrowing", "yes" if policy.borrowing else "no"),
            (
                "longest lease",
                format_ms(policy.window_max_seconds * 1_000) if policy.window_max_seconds else "",
            ),
        ]
    )


def _capacity(gpus: Decimal | None) -> str:
    if gpus is None:
        return "no limit"
    return count(str(gpus), "GPU") if gpus else "0 GPUs: drained, nobody new gets in"


def show_removed(answer: PoolAnswer) -> None:
    """A pool that is no more."""
    click.echo(f"Removed {answer.gpu_type}/{answer.region}; it was:")
    show_pool(answer)


def show_weights(answer: WeightsAnswer) -> None:
    """Weights in a table."""
    output.print_table(
        ["account", ">weight", "may borrow"],
        [
            [row.account, str(row.weight), "yes" if row.may_borrow else "no"]
            for row in answer.weights
        ],
        empty="No weights: everybody counts for 1.",
    )


def _held(shares: SharesAnswer) -> str:
    """The GPUs held in a pool, and the consequence if that is more than its capacity."""
    if shares.capacity is None:
        return ""
    text = f"{shares.held} of {shares.capacity}"
    if not shares.over:
        return text
    gpus = count(str(shares.over), "more GPU")
    are = "is" if shares.over == 1 else "are"
    return f"{text}: {shares.over} over; nothing new starts until {gpus} {are} free"


def _preemption(is_on: bool, grace_s: int) -> str:  # it is the term itself
    """Whether work is stopped for others, and how long it has to save itself."""
    return f"yes, {format_seconds(grace_s)} of notice" if is_on else "no"


def _young(min_runtime_s: int) -> str:
    """For how long new work is not stopped for others."""
    return f"{format_seconds(min_runtime_s)} before a preemption" if min_runtime_s else "none"


def _kept(hold_after_s: int) -> str:
    """From when on a first request that cannot start is not overtaken."""
    return f"after {format_seconds(hold_after_s)} in the queue" if hold_after_s else "never"


def _past(order: str, half_life_s: int) -> str:
    if not half_life_s:
        return ""
    return f"{order}, half of it forgotten in {format_seconds(half_life_s)}"
