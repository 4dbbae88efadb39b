"""``gpucredits idle-guard``: when agents warn and drain jobs that leave their GPUs unused."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import Session, Write, calls, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_seconds
from gpucredits.wire.billing.usage import IdleGuardAnswer


@click.group("idle-guard", cls=Group)
def idle_guard() -> None:
    """Jobs that leave their GPUs unused: warned, then drained."""


@idle_guard.command("show")
@click.argument("account", type=values.account)
@calls
def show(session: Session, account: str) -> None:
    """Show the guard in force for ACCOUNT: its own, or one of an account above."""
    session.run(client_calls.idle_guard(account), show_guard)


@idle_guard.command("set")
@click.argument("account", type=values.account)
@click.option(
    "--window",
    "window_ms",
    type=values.duration,
    help="The time over which to average utilisation; 0s switches the guard off.",
)
@click.option(
    "--below",
    "utilization_percent",
    type=click.IntRange(1, 100),
    help="GPUs below this percentage are idle. Default: 5.",
)
@click.option(
    "--memory",
    "memory_percent",
    type=click.IntRange(0, 100),
    help="GPUs with at least this percentage of memory in use are busy. Default: off.",
)
@click.option(
    "--startup", "startup_ms", type=values.duration, help="Time to the first use. Default: 10m."
)
@click.option(
    "--warning",
    "warning_ms",
    type=values.duration,
    help="The time from the warning to the drain. Default: 5m.",
)
@click.option(
    "--grace",
    "grace_ms",
    type=values.duration,
    help="The time from the signal to SIGKILL. Default: 1m.",
)
@sets(
    {
        "below": "utilization_percent",
        "memory": "memory_percent",
        "startup": "startup_seconds",
        "warning": "warning_seconds",
        "grace": "grace_seconds",
    }
)
def set_guard(  # noqa: PLR0913  # each is an option
    session: Session,
    account: str,
    *,
    window_ms: int | None,
    utilization_percent: int | None,
    memory_percent: int | None,
    startup_ms: int | None,
    warning_ms: int | None,
    grace_ms: int | None,
    write: Set,
) -> None:
    """Change the guard of ACCOUNT; accounts below without a guard of their own follow."""
    call = client_calls.set_idle_guard(
        account,
        window_seconds=values.whole_seconds(window_ms, "--window"),
        utilization_percent=utilization_percent,
        memory_percent=memory_percent,
        startup_seconds=values.whole_seconds(startup_ms, "--startup"),
        warning_seconds=values.whole_seconds(warning_ms, "--warning"),
        grace_seconds=values.whole_seconds(grace_ms, "--grace"),
        **write,
    )
    session.run(call, show_guard)


@idle_guard.command("end")
@click.argument("account", type=values.account)
@writes
def end_guard(session: Session, account: str, *, write: Write) -> None:
    """End the guard of ACCOUNT; the account follows the accounts above again."""
    session.run(client_calls.end_idle_guard(account, **write), show_guard)


def show_guard(answer: IdleGuardAnswer) -> None:
    """The guard in force."""
    facts: list[tuple[str, str | None]] = [("account", answer.account)]
    if not answer.window_seconds:
        facts.append(("idle jobs", "are left alone"))
    else:
        window = format_seconds(answer.window_seconds)
        facts += [
            ("idle", f"below {answer.utilization_percent}% over {window}, or without a process"),
            (
                "memory held",
                f"{answer.memory_percent}% counts as use"
                if answer.memory_percent
                else "does not count as use",
            ),
            (
                "watched",
                f"from the first use, or {format_seconds(answer.startup_seconds)} after the start",
            ),
            ("warned", "when idle"),
            ("drained", f"{format_seconds(answer.warning_seconds)} after the warning"),
            ("killed", f"{format_seconds(answer.grace_seconds)} after the drain signal"),
        ]
    facts.append(("set for", answer.source))
    if answer.set_by_scope:
        facts.append(("set by", f"a key of {answer.set_by_scope} scope"))
    output.print_facts(facts)
