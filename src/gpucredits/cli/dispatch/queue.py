"""``queue``: who waits, where and why."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any, Final, get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.core.money import count
from gpucredits.wire.dispatch.queue import QueueAnswer, QueuePage, QueueStateName

POLL_S: Final = 20
ANY: Final = "any"


@click.group(cls=Group)
def queue() -> None:
    """Requests that wait for capacity, credits or quota."""


@queue.command("list")
@click.argument("account", type=values.account, required=False)
@click.option("--pool", help="Only this pool, such as h100, h100/eu or nvidia.com/h100.")
@click.option("--region", type=values.region, help="Its region, where --pool is the type alone.")
@click.option(
    "--state",
    type=click.Choice([*get_args(QueueStateName), ANY]),
    default="waiting",
    show_default=True,
    help="Only these; ended requests are kept for 30 days.",
)
@pages
def list_queue(
    session: Session,
    account: str | None,
    *,
    pool: str | None,
    region: str | None,
    state: str,
    page: PageAt,
    follow: bool,
) -> None:
    """Requests of ACCOUNT and all below it, the latest first."""
    wanted: Any = None if state == ANY else state
    call = client_calls.queue_page(account=account, pool=pool, region=region, state=wanted, **page)
    session.run_pages(call, show_queue, items="queue", follow=follow)


@queue.command("show")
@click.argument("queue_id")
@calls
def show(session: Session, queue_id: str) -> None:
    """One request: its place, why it waits and when it may start."""
    session.run(client_calls.queued(queue_id), show_queued)


@queue.command("wait")
@click.argument("queue_id")
@click.option("--for", "most_ms", type=values.duration, default="10m", show_default=True)
@calls
def wait(session: Session, queue_id: str, *, most_ms: int) -> None:
    """Wait until a request is admitted; exit code 1 if it never will be, 3 if it still waits."""
    deadline = time.monotonic() + most_ms / 1_000
    with session.client() as client:
        while True:
            left = max(deadline - time.monotonic(), 0)
            call = client_calls.queued(queue_id, wait_seconds=min(POLL_S, int(left)))
            reply = client.fetch(call)
            if reply.value.state != "waiting" or left < 1:
                break
    session.print(reply, show_queued)
    if reply.value.state == "waiting":
        raise click.exceptions.Exit(output.EXIT_UNAVAILABLE)
    if reply.value.state != "admitted":
        raise click.exceptions.Exit(output.EXIT_REFUSED)


@queue.command("cancel")
@click.argument("queue_id")
@writes
def cancel(session: Session, queue_id: str, *, write: Write) -> None:
    """Wait no more; the members of a gang give up together."""
    session.run(client_calls.cancel_queued(queue_id, **write), show_queued)


def show_queued(answer: QueueAnswer) -> None:
    """One request."""
    asked = f"{answer.gpu_count} x {answer.gpu_type} in {answer.region}"
    output.print_facts(
        [
            ("request", answer.queue_id),
            ("state", answer.state),
            ("account", answer.account),
            ("job", answer.job_id),
            ("GPUs", asked),
            ("admitted with", _gpus(answer.admitted_gpus)),
            ("reservation", answer.reservation_id),
            ("place", _place(answer)),
            ("waits for", _waits_for(answer)),
            ("because", answer.sentence if answer.state != "admitted" else ""),
            ("may start", output.instant(answer.estimate)),
            ("priority", str(answer.priority or "")),
            ("gang", f"{answer.gang} of {answer.gang_size}" if answer.gang else ""),
            ("since", output.instant(answer.submitted_at)),
            ("until", output.instant(answer.deadline) if answer.state == "waiting" else ""),
            ("ended", output.instant(answer.ended_at)),
        ]
    )


def _place(answer: QueueAnswer) -> str:
    """Its place; somebody whose turn cannot come yet has none, and somebody new not yet one."""
    return str(answer.position or ("none" if answer.reason else ""))


def _waits_for(answer: QueueAnswer) -> str:
    is_drained = answer.reason == "drained"
    return f"{answer.waits_for}: drained" if is_drained else answer.waits_for or ""


def _gpus(number: Decimal | None) -> str:
    return count(str(number), "GPU") if number else ""


def show_queue(page: QueuePage) -> None:
    """A page of requests."""
    output.print_table(
        ["request", "state", "account", "job", "GPUs", ">place", "waits for", "may start"],
        [
            [
                row.queue_id,
                row.state,
                row.account,
                row.job_id,
                f"{row.gpu_count} x {row.gpu_type}",
                _place(row),
                _waits_for(row),
                output.instant(row.estimate),
            ]
            for row in page.queue
        ],
        empty="Nobody waits.",
    )
