"""Leases: ``reserve``, ``heartbeat``, ``settle``, ``cancel``, ``reservation``."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final, get_args

import click

from gpucredits.cli.dispatch.queue import show_queued
from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command, Group
from gpucredits.cli.terminal.job_options import job_options
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.client.calls import ReserveFields
from gpucredits.core.duration import format_ms, format_seconds
from gpucredits.core.money import count
from gpucredits.wire.ledger.closing import ClosedAnswer
from gpucredits.wire.ledger.heartbeat import BeatAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer, ReservationPage, StateName

_DUPLICATE: Final = "a duplicate: nothing was charged"
_NOTES: Final = {
    "used_ms_went_back": "less than was reported before: the last report stands",
    "used_ms_beyond_elapsed": "more than can have passed: charged up to now",
    "used_ms_beyond_authorised": "more than was authorised: charged as far as every bound allows",
    "seq_taken": "this seq or a later one was used before, with less use: report with a higher one",
    "lapsed": "the lease had lapsed: charged up to its end, and to what was authorised",
}


@click.command(cls=Command)
@click.argument("account", type=values.account)
@click.option("--job", "job_id", required=True, help="The job's id.")
@job_options
@click.option("--wait", is_flag=True, help="Wait for capacity, credits or quota, in the queue.")
@click.option(
    "--until",
    "deadline",
    type=values.instant,
    help="When to stop waiting, such as 2h. Default: 7d.",
)
@writes
def reserve(
    session: Session,
    account: str,
    *,
    job: ReserveFields,
    wait: bool,
    deadline: datetime | None,
    write: Write,
) -> None:
    """Ask for a lease: hold credits for a job of ACCOUNT."""
    if not wait:
        session.run(client_calls.reserve(account, **job, **write), show_reservation)
    elif write["dry_run"]:
        raise click.UsageError("--dry-run does not wait: leave out --wait to see what would be.")
    else:
        call = client_calls.enqueue(account, **job, deadline=deadline, key=write["key"])
        with session.client() as client:
            reply = client.fetch(call)
        session.print(reply, show_queued)
        if reply.value.state not in ("waiting", "admitted"):
            raise click.exceptions.Exit(output.EXIT_REFUSED)


@click.command(cls=Command)
@click.argument("reservation_id")
@click.option(
    "--used",
    "used_ms",
    type=values.duration,
    required=True,
    help="Use since the admission in all, such as 90s.",
)
@click.option(
    "--seq",
    type=click.IntRange(min=1),
    help="The number of the report. Default: one after the last accepted.",
)
@click.option("--dry-run", is_flag=True, help="Show what the answer would be; change nothing.")
@click.option("--exit-code", is_flag=True, help="Exit with 5 for drain and with 6 for stop.")
@calls
def heartbeat(
    session: Session,
    reservation_id: str,
    *,
    used_ms: int,
    seq: int | None,
    dry_run: bool,
    exit_code: bool,
) -> None:
    """Report the use of a job, and renew its lease.

    The use is that of the whole job since it was admitted.
    """
    with session.client() as client:
        if seq is None:
            seq = client.reservation(reservation_id).seq + 1
        call = client_calls.extend(reservation_id, seq=seq, used_ms=used_ms, dry_run=dry_run)
        reply = client.fetch(call)
    session.print(reply, show_beat, is_dry=dry_run)
    if exit_code and reply.value.decision in output.EXITS_OF_BEATS:
        raise click.exceptions.Exit(output.EXITS_OF_BEATS[reply.value.decision])


@click.command(cls=Command)
@click.argument("reservation_id")
@click.option(
    "--used",
    "used_ms",
    type=values.duration,
    help="Total use since admission. Default: the last reported.",
)
@click.option("--seq", type=click.IntRange(min=1), help="The number of this last report.")
@writes
def settle(
    session: Session, reservation_id: str, *, used_ms: int | None, seq: int | None, write: Write
) -> None:
    """End a job: charge what it used, release the rest of the hold."""
    call = client_calls.settle(reservation_id, seq=seq, used_ms=used_ms, **write)
    session.run(call, show_closed)


@click.command(cls=Command)
@click.argument("reservation_id")
@writes
def cancel(session: Session, reservation_id: str, *, write: Write) -> None:
    """Release the hold of a job that never started."""
    session.run(client_calls.cancel(reservation_id, **write), show_closed)


@click.group(cls=Group)
def reservation() -> None:
    """Leases, running and ended."""


@reservation.command("show")
@click.argument("reservation_id")
@calls
def show(session: Session, reservation_id: str) -> None:
    """One lease and what it has cost so far."""
    session.run(client_calls.reservation(reservation_id), show_reservation)


@reservation.command("list")
@click.argument("account", type=values.account, required=False)
@click.option("--tree", is_flag=True, help="Those of all accounts below it too.")
@click.option("--job", "job_id", help="Only those of this job.")
@click.option("--node", help="Only those on this node.")
@click.option("--state", type=click.Choice(get_args(StateName)), help="Only leases in this state.")
@pages
def list_reservations(
    session: Session,
    account: str | None,
    *,
    tree: bool,
    job_id: str | None,
    node: str | None,
    state: StateName | None,
    page: PageAt,
    follow: bool,
) -> None:
    """Leases of ACCOUNT's jobs, the latest first."""
    call = client_calls.reservation_page(
        account=account, tree=tree or None, job_id=job_id, node=node, state=state, **page
    )
    shown = partial(show_reservations, below=output.look_below(account, tree=tree))
    session.run_pages(call, shown, items="reservations", follow=follow)


def show_reservation(answer: ReservationAnswer) -> None:
    """One lease."""
    is_live = answer.state == "active"
    output.print_facts(
        [
            ("reservation", answer.reservation_id),
            ("state", answer.state),
            ("decision", answer.decision if is_live else ""),
            ("account", answer.account),
            ("payer", answer.payer if answer.payer != answer.account else ""),
            ("job", answer.job_id),
            ("node", answer.node),
            ("GPUs", f"{answer.gpu_count} x {answer.gpu_type} in {answer.region}"),
            ("rate", f"{count(answer.rate_per_hour, 'credit')}/hour"),
            ("on exhaustion", _exhaustion(answer)),
            ("held", answer.held),
            ("settled", answer.settled),
            ("paid by", _shares(answer)),
            ("adjusted", answer.adjusted if answer.adjusted != "0" else ""),
            ("refunded", answer.refunded if answer.refunded != "0" else ""),
            ("used", format_ms(answer.used_ms)),
            ("last seq", str(answer.seq)),
            ("lease ends in", format_ms(answer.expires_in_ms) if is_live else ""),
            ("has to stop by", output.instant(answer.stops_at) if is_live else ""),
            ("ended", output.instant(answer.ended_at)),
            ("ended by", answer.ended_by or ""),
            ("labels", output.labels(answer.metadata)),
        ]
    )


def _shares(answer: ReservationAnswer) -> str:
    """Who has paid how much, if several accounts have."""
    if len(answer.payers) == 1:
        return ""
    return ", ".join(f"{each.account} {each.paid}" for each in answer.payers)


def _exhaustion(answer: ReservationAnswer) -> str:
    """The agreed exhaustion, if it is not the default."""
    if (answer.exhaustion, answer.grace_seconds, answer.overdraft) == ("drain", 0, "0"):
        return ""
    text: str = answer.exhaustion
    if answer.grace_seconds:
        text += f", signal {format_seconds(answer.grace_seconds)} before"
    return f"{text}, overdraft {answer.overdraft}" if answer.overdraft != "0" else text


def show_reservations(page: ReservationPage, *, below: str = "") -> None:
    """A page of leases."""
    output.print_table(
        ["reservation", "state", "account", "job", "GPUs", ">held", ">settled", ">used"],
        [
            [
                row.reservation_id,
                row.state,
                row.account,
                row.job_id,
                f"{row.gpu_count} x {row.gpu_type}",
                row.held,
                row.settled,
                format_ms(row.used_ms),
            ]
            for row in page.reservations
        ],
        empty=f"No reservations{below}.",
    )


def show_beat(answer: BeatAnswer) -> None:
    """The answer to a heartbeat."""
    output.print_facts(
        [
            ("reservation", answer.reservation_id),
            ("decision", answer.decision),
            ("because", answer.reason),
            ("settled", answer.settled),
            ("held", answer.held),
            ("lease ends in", format_ms(answer.expires_in_ms)),
            ("signal it in", _span(answer.signal_in_ms)),
            ("clears in", _span(answer.clears_in_ms)),
            ("note", _NOTES.get(answer.flagged) or (_DUPLICATE if answer.duplicate else "")),
        ]
    )


def _span(ms: int | None) -> str:
    return "" if ms is None else format_ms(ms)


def show_closed(answer: ClosedAnswer) -> None:
    """How a lease ended."""
    output.print_facts(
        [
            ("reservation", answer.reservation_id),
            ("state", answer.state),
            ("settled", answer.settled),
            ("released", answer.released),
            ("used", format_ms(answer.used_ms)),
            ("note", _NOTES.get(answer.flagged, answer.flagged)),
        ]
    )
