"""``gpucredits maintenance``: extend leases over a planned stop, and list leases that end in it."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import Session, Write, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.outages.maintenance import MaintenanceAnswer


@click.command(cls=Command)
@click.argument("action", type=values.Words(["status", "end"]), required=False)
@click.option(
    "--for", "for_ms", type=values.duration, help="How long leases must last from now on: 30m."
)
@click.option("--reason", help="The reason, for the audit log.")
@writes
def maintenance(
    session: Session, action: str | None, *, for_ms: int | None, reason: str | None, write: Write
) -> None:
    """Announce a planned stop, or show or end the announced one.

    --for announces a stop, `status` lists the leases that it does not cover, `end` ends it.
    """
    if (for_ms is None) is (action is None):
        raise click.UsageError("Give --for 30m to announce a stop, or one of: status, end.")
    if action == "status":
        session.run(client_calls.maintenance(), show_maintenance)
    elif action == "end":
        session.run(client_calls.end_maintenance(**write), show_end)
    else:
        seconds = values.whole_seconds(for_ms, "--for") or 0
        call = client_calls.announce_maintenance(seconds, reason=reason, **write)
        session.run(call, show_maintenance)


def show_end(answer: MaintenanceAnswer) -> None:
    """Say which maintenance was ended, if one was announced."""
    if answer.ended_until is None:
        output.say(f"No maintenance was announced. Live leases: {answer.live}.")
    else:
        until = output.instant(answer.ended_until)
        output.say(f"Ended the maintenance until {until}. Live leases: {answer.live}.")


def show_maintenance(answer: MaintenanceAnswer) -> None:
    """Show the announced stop, and the leases that end before it does."""
    if answer.state == "none":
        output.say(f"No maintenance is announced. Live leases: {answer.live}.")
        return
    output.print_facts(
        [
            ("until", output.instant(answer.until)),
            ("reason", answer.reason),
            ("live leases", str(answer.live)),
            ("covered", str(answer.covered)),
            ("not reported yet", str(answer.waiting)),
            ("cannot be covered", str(answer.short)),
        ]
    )
    output.print_table(
        ["reservation", "account", "payer", "ends", ">credits missing"],
        [
            [row.reservation_id, row.account, row.payer, output.instant(row.ends_at), row.missing]
            for row in answer.leases
        ],
        empty=all_clear(answer),
    )


def all_clear(answer: MaintenanceAnswer) -> str:
    """The sentence for a list without short leases; it says if no lease is covered yet."""
    if not answer.live:
        return "No lease is live."
    if not answer.covered:
        return "No lease has reported yet: look again after a third of a window."
    if answer.waiting:
        return "Every lease that has reported lasts to the end."
    return "Every live lease lasts to the end."
