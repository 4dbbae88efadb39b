"""``gpucredits loss``: checkpoints, claims of lost work, and the terms that pay them."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_ms
from gpucredits.core.money import count
from gpucredits.wire.reconciliation.lost_work import (
    CauseName,
    CheckpointAnswer,
    LossTermsAnswer,
    LostWorkAnswer,
    LostWorkPage,
)


@click.group(cls=Group)
def loss() -> None:
    """Work that was lost after the last checkpoint."""


@loss.command("checkpoint")
@click.argument("reservation_id")
@click.argument("checkpoint_ms", metavar="CHECKPOINT", type=values.since_admission)
@writes
def checkpoint(session: Session, reservation_id: str, checkpoint_ms: int, *, write: Write) -> None:
    """Report that a running job has saved its work.

    CHECKPOINT is how long after the admission, such as 30m; a bare number is milliseconds.
    """
    call = client_calls.report_checkpoint(reservation_id, checkpoint_ms, dry_run=write["dry_run"])
    session.run(call, show_checkpoint)


@loss.command("claim")
@click.argument("reservation_id")
@click.option(
    "--cause",
    type=click.Choice(["node_failure", "preemption"]),
    required=True,
    help="Why the work was lost.",
)
@click.option(
    "--checkpoint",
    "--checkpoint-ms",
    "checkpoint_ms",
    metavar="CHECKPOINT",
    type=values.since_admission,
    help="The last checkpoint, if it was not reported: 30m after the admission, or milliseconds.",
)
@click.option("--note", help="What happened.")
@writes
def claim(
    session: Session,
    reservation_id: str,
    *,
    cause: CauseName,
    checkpoint_ms: int | None,
    note: str | None,
    write: Write,
) -> None:
    """Claim the credits for use after the last checkpoint, within the account's terms."""
    call = client_calls.claim_lost_work(
        reservation_id, cause, checkpoint_ms=checkpoint_ms, note=note, **write
    )
    session.run(call, show_claim)


@loss.command("list")
@click.argument("account", type=values.account, required=False)
@pages
def list_claims(session: Session, account: str | None, *, page: PageAt, follow: bool) -> None:
    """List the claims of ACCOUNT and all below it, or all claims, the latest lease first."""
    call = client_calls.lost_work_page(account, **page)
    session.run_pages(call, show_claims, items="lost_work", follow=follow)


@loss.command("terms")
@click.argument("account", type=values.account)
@calls
def terms(session: Session, account: str) -> None:
    """Show the terms by which lost work of ACCOUNT is refunded."""
    session.run(client_calls.lost_work_terms(account), show_terms)


@loss.command("set")
@click.argument("account", type=values.account)
@click.option(
    "--hours-per-job", type=int, help="The most hours refunded to a job [at first: 0, off]."
)
@click.option(
    "--window-hours", type=int, help="Hours after the end in which to claim [at first: 72]."
)
@click.option(
    "--unreported-hours",
    type=int,
    help="The most hours if no checkpoint was reported [at first: 0].",
)
@click.option(
    "--hours-per-account", type=int, help="The most hours of all jobs in 30 days [at first: 24]."
)
@sets(
    {
        "hours-per-job": "hours_per_job",
        "hours-per-account": "hours_per_account",
        "window-hours": "window_hours",
        "unreported-hours": "unreported_hours",
    }
)
def set_terms(
    session: Session,
    account: str,
    *,
    hours_per_job: int | None,
    window_hours: int | None,
    unreported_hours: int | None,
    hours_per_account: int | None,
    write: Set,
) -> None:
    """Change the terms of lost work of ACCOUNT; accounts below without terms follow."""
    call = client_calls.set_lost_work_terms(
        account,
        hours_per_job=hours_per_job,
        window_hours=window_hours,
        unreported_hours=unreported_hours,
        hours_per_account=hours_per_account,
        **write,
    )
    session.run(call, show_terms)


@loss.command("end")
@click.argument("account", type=values.account)
@writes
def end_terms(session: Session, account: str, *, write: Write) -> None:
    """End the terms of ACCOUNT; the account inherits terms again."""
    session.run(client_calls.end_lost_work_terms(account, **write), show_terms)


def show_checkpoint(answer: CheckpointAnswer) -> None:
    """The last checkpoint of a lease."""
    output.say(
        f"The last checkpoint of {answer.reservation_id} is at "
        f"{format_ms(answer.checkpoint_ms)} after its admission."
    )


def show_claim(answer: LostWorkAnswer) -> None:
    """What was given back."""
    output.say(
        f"Gave back {count(answer.amount, 'credit')} for {format_ms(answer.lost_ms)} of "
        f"{answer.reservation_id} after its checkpoint at {format_ms(answer.checkpoint_ms)}."
    )


def show_claims(page: LostWorkPage) -> None:
    """A page of claims."""
    output.print_table(
        ["reservation", "account", "job", "cause", ">lost", ">given back", "state"],
        [
            [
                row.reservation_id,
                row.account,
                row.job_id,
                row.cause,
                format_ms(row.lost_ms),
                row.amount,
                row.state,
            ]
            for row in page.lost_work
        ],
        empty="No claims.",
    )


def show_terms(answer: LossTermsAnswer) -> None:
    """The terms of an account."""
    output.print_facts(
        [
            ("account", answer.account),
            ("gives back", f"up to {count(answer.hours_per_job, 'hour')} of a job"),
            ("of all jobs", f"up to {count(answer.hours_per_account, 'hour')} in 30 days"),
            ("claim within", count(answer.window_hours, "hour")),
            ("unreported", f"up to {count(answer.unreported_hours, 'hour')}"),
            ("set for", answer.set_for or "nobody: the default"),
        ]
    )
