"""``gpucredits explain``: whether a job would be admitted now, and what each gate says."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.job_options import job_options
from gpucredits.cli.terminal.session import Session, calls
from gpucredits.client import calls as client_calls
from gpucredits.client.calls import ReserveFields
from gpucredits.core.money import count
from gpucredits.wire.limits.admission import AdmissionAnswer, FunderAnswer

JOB_DEFAULT = "explain"


@click.command(cls=Command)
@click.argument("account", type=values.account, required=False)
@click.option("--account", "named", type=values.account, help="The same as ACCOUNT.")
@click.option("--job", "job_id", default=JOB_DEFAULT, help="Default: a job that is new.")
@job_options
@calls
def explain(
    session: Session, *, account: str | None, named: str | None, job: ReserveFields
) -> None:
    """Ask whether a job would be admitted now, and start nothing.

    Exits with 0 when it would be, and with 4 when it would not.
    """
    if (account is None) == (named is None):
        raise click.UsageError("Whose job it would be must be given once: ACCOUNT or --account.")
    call = client_calls.explain(account or named or "", **job)
    with session.client() as client:
        reply = client.fetch(call)
    session.print(reply, show_admission)
    if not reply.value.admitted:
        raise click.exceptions.Exit(output.EXIT_NOT_ADMITTED)


def show_admission(answer: AdmissionAnswer) -> None:
    """The verdict, what it would cost, who would pay, and every gate."""
    output.say(f"Admitted: {answer.detail}" if answer.admitted else _verdict(answer))
    click.echo()
    output.print_facts(
        [
            ("payer", answer.payer),
            (
                "price",
                answer.price and f"{count(answer.price, 'credit')}/GPU-hour ({answer.price_id})",
            ),
            ("rate", answer.rate_per_hour and f"{count(answer.rate_per_hour, 'credit')}/hour"),
            ("hold", answer.held and count(answer.held, "credit")),
            ("paid from", _lots(answer) if answer.admitted else ""),
        ]
    )
    if len(answer.funders) > 1:
        click.echo()
        show_funders(answer.funders)
    if not answer.gates:
        return
    click.echo()
    output.print_gates(answer.gates)


def show_funders(funders: list[FunderAnswer]) -> None:
    """The accounts that may pay, nearest first."""
    output.print_table(
        ["may pay", "funding", ">can spend", "holds the window", "could from"],
        [
            [
                row.account,
                row.funding or "",
                row.spendable or "",
                {True: "yes", False: "no", None: ""}[row.can_pay],
                output.instant(row.clears_at),
            ]
            for row in funders
        ],
        empty="",
    )


def _verdict(answer: AdmissionAnswer) -> str:
    return f"Not admitted ({answer.reason}): {answer.detail}"


def _lots(answer: AdmissionAnswer) -> str:
    return ", ".join(f"{lot.grant_id or lot.kind} {lot.amount}" for lot in answer.grants)
