"""``gpucredits explain``: whether a job would be admitted now, and what each gate says."""

from __future__ import annotations

from typing import get_args

import click

from gpucredits.cli import output, values
from gpucredits.cli.session import Session, calls
from gpucredits.client import admissions
from gpucredits.core import bounds
from gpucredits.core.wording import count
from gpucredits.wire.admission import AdmissionAnswer
from gpucredits.wire.reservation import ExhaustionName

JOB_DEFAULT = "explain"


@click.command()
@click.argument("account", type=values.account, required=False)
@click.option("--account", "named", type=values.account, help="The same as ACCOUNT.")
@click.option("--type", "gpu_type", required=True, help="The type of GPU, such as h100.")
@click.option("--gpus", "gpu_count", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--job", "job_id", default=JOB_DEFAULT, help="Default: a job that is new.")
@click.option("--region", help="Default: default.")
@click.option(
    "--window", "window_ms", type=values.duration, help="How far ahead to hold. Default: 2m."
)
@click.option(
    "--escrow",
    "escrow_windows",
    type=click.IntRange(0, bounds.ESCROW_WINDOWS_MAX),
    help="Windows to hold besides.",
)
@click.option("--max", "max_amount", type=values.amount, help="The most the job may cost.")
@click.option("--payer", type=values.account, help="The account or one above it.")
@click.option("--on-exhaustion", "exhaustion", type=click.Choice(get_args(ExhaustionName)))
@click.option("--overdraft", type=values.amount, help="What it may overdraw.")
@calls
def explain(  # noqa: PLR0913  # one argument for each option
    session: Session,
    *,
    account: str | None,
    named: str | None,
    gpu_type: str,
    gpu_count: int,
    job_id: str,
    region: str | None,
    window_ms: int | None,
    escrow_windows: int | None,
    max_amount: str | None,
    payer: str | None,
    exhaustion: ExhaustionName | None,
    overdraft: str | None,
) -> None:
    """Ask whether a job of ACCOUNT would be admitted now, and start nothing.

    Exits with 0 when it would be, and with 4 when it would not.
    """
    if (account is None) == (named is None):
        raise click.UsageError("Whose job it would be must be given once: ACCOUNT or --account.")
    call = admissions.explain(
        account or named or "",
        job_id=job_id,
        gpu_type=gpu_type,
        gpu_count=gpu_count,
        region=region,
        window_seconds=values.whole_seconds(window_ms, "--window"),
        escrow_windows=escrow_windows,
        max_amount=max_amount,
        payer=payer,
        exhaustion=exhaustion,
        overdraft=overdraft,
    )
    with session.client() as client:
        reply = client.fetch(call)
    session.print(reply, show_admission)
    if not reply.value.admitted:
        raise click.exceptions.Exit(output.EXIT_NOT_ADMITTED)


def show_admission(answer: AdmissionAnswer) -> None:
    """The verdict, what it would cost, who would pay, and every gate."""
    click.echo(f"Admitted: {answer.detail}" if answer.admitted else _verdict(answer))
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
    if not answer.gates:
        return
    click.echo()
    output.print_gates(answer.gates)


def _verdict(answer: AdmissionAnswer) -> str:
    return f"Not admitted ({answer.reason}): {answer.detail}"


def _lots(answer: AdmissionAnswer) -> str:
    return ", ".join(f"{lot.grant_id or lot.kind} {lot.amount}" for lot in answer.grants)
