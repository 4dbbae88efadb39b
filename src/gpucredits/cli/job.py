"""``gpucredits reserve``, ``heartbeat``, ``settle`` and ``cancel``: a job's lease by hand."""

from __future__ import annotations

from typing import Any

import click

from gpucredits.cli.connection import Session, connected, labels_option
from gpucredits.client import calls
from gpucredits.wire.reservation import ClosedAnswer


@click.command()
@click.argument("account")
@click.option("--job", "job_id", required=True)
@click.option("--type", "gpu_type", required=True, help="Type of GPU.")
@click.option("--gpus", "gpu_count", type=click.IntRange(1), default=1, show_default=True)
@click.option("--region")
@click.option("--node")
@click.option("--window", "window_seconds", type=click.IntRange(1), metavar="SECONDS")
@click.option("--escrow-windows", type=click.IntRange(0, 2))
@click.option("--max-amount", metavar="CREDITS")
@click.option("--payer", metavar="ACCOUNT")
@click.option("--dry-run", is_flag=True)
@click.option("--idempotency-key")
@labels_option
@connected
def reserve(  # the named ones are those that are not passed on as they are
    session: Session,
    *,
    account: str,
    job_id: str,
    gpu_type: str,
    gpu_count: int,
    dry_run: bool,
    idempotency_key: str | None,
    **fields: Any,
) -> None:
    """Ask for a lease: hold credits for a job's first window."""
    answer = session.send(
        calls.reserve(
            account,
            job_id=job_id,
            gpu_type=gpu_type,
            gpu_count=gpu_count,
            key=idempotency_key,
            dry_run=dry_run,
            **fields,
        )
    )
    facts: list[tuple[str, object]] = [
        ("reservation", answer.reservation_id),
        ("state", answer.state),
        ("payer", answer.payer),
        ("rate per second", answer.rate_per_second),
        ("held", answer.held),
        ("expires", f"{answer.expires_at} (in {answer.expires_in_ms / 1_000:g} s)"),
    ]
    session.show(answer, facts)


@click.command()
@click.argument("reservation_id")
@click.option("--seq", type=click.IntRange(1), required=True)
@click.option("--used-ms", type=click.IntRange(0), required=True, help="Use since admission.")
@connected
def heartbeat(session: Session, *, reservation_id: str, seq: int, used_ms: int) -> None:
    """Report use: settle the slice and renew the lease."""
    answer = session.send(calls.extend(reservation_id, seq=seq, used_ms=used_ms))
    facts: list[tuple[str, object]] = [
        ("decision", answer.decision),
        ("reason", answer.reason or None),
        ("settled", answer.settled),
        ("held", answer.held),
        ("expires in", f"{answer.expires_in_ms / 1_000:g} s"),
    ]
    session.show(answer, facts)


@click.command()
@click.argument("reservation_id")
@click.option("--seq", type=click.IntRange(1))
@click.option("--used-ms", type=click.IntRange(0), help="Else the last accepted use.")
@click.option("--idempotency-key")
@connected
def settle(
    session: Session,
    *,
    reservation_id: str,
    seq: int | None,
    used_ms: int | None,
    idempotency_key: str | None,
) -> None:
    """End a job: settle what was used, release the rest."""
    operation = calls.settle(reservation_id, seq=seq, used_ms=used_ms, key=idempotency_key)
    show_closed(session, session.send(operation))


@click.command()
@click.argument("reservation_id")
@click.option("--idempotency-key")
@connected
def cancel(session: Session, *, reservation_id: str, idempotency_key: str | None) -> None:
    """Release the hold of a job that never started."""
    show_closed(session, session.send(calls.cancel(reservation_id, key=idempotency_key)))


def show_closed(session: Session, answer: ClosedAnswer) -> None:
    """How a lease ended, as people want to see it."""
    facts: list[tuple[str, object]] = [
        ("reservation", answer.reservation_id),
        ("state", answer.state),
        ("settled", answer.settled),
        ("released", answer.released),
        ("used", f"{answer.used_ms / 1_000:g} s"),
    ]
    session.show(answer, facts)
