"""``gpucredits request``: ask for more, and decide about it."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.core.money import count, count_of
from gpucredits.wire.billing.request import (
    RequestAnswer,
    RequestKindName,
    RequestPage,
    RequestStateName,
    TermsAnswer,
)


@click.group(cls=Group)
def request() -> None:
    """Asking for more: credits, a boost of a limit, a bigger budget."""


@request.command("ask")
@click.argument("account", type=values.account)
@click.argument("kind", type=values.Words(get_args(RequestKindName)))
@click.argument("amount", type=values.amount)
@click.option("--reason", required=True, help="Why: whoever decides reads it.")
@click.option("--ends", "ends_at", type=values.instant, help="Until when, such as 7d.")
@click.option("--quota", "quota_id", help="Which quota to raise.")
@click.option("--refill", "refill_per_hour", type=values.amount, help="Of a rate limit, an hour.")
@click.option("--budget", help="Which budget to change [default: default].")
@writes
def ask(  # noqa: PLR0913  # one argument for each option
    session: Session,
    account: str,
    kind: RequestKindName,
    amount: str,
    *,
    reason: str,
    ends_at: datetime | None,
    quota_id: str | None,
    refill_per_hour: str | None,
    budget: str | None,
    write: Write,
) -> None:
    """Ask for AMOUNT more of KIND for ACCOUNT; of a budget, AMOUNT is the new allowance."""
    call = client_calls.ask(
        account,
        kind,
        amount,
        reason=reason,
        ends_at=ends_at,
        quota_id=quota_id,
        refill_per_hour=refill_per_hour,
        budget=budget,
        **write,
    )
    session.run(call, show_request)


@request.command("list")
@click.argument("account", type=values.account, required=False)
@click.option(
    "--state", type=click.Choice(get_args(RequestStateName)), help="Only requests in this state."
)
@click.option(
    "--kind", type=values.Words(get_args(RequestKindName)), help="Only requests of this kind."
)
@pages
def list_requests(
    session: Session,
    account: str | None,
    *,
    state: RequestStateName | None,
    kind: RequestKindName | None,
    page: PageAt,
    follow: bool,
) -> None:
    """The requests of ACCOUNT and all below it, or of everything, the latest first."""
    call = client_calls.request_page(account, state=state, kind=kind, **page)
    session.run_pages(call, show_requests, items="requests", follow=follow)


@request.command("show")
@click.argument("request_id")
@calls
def show(session: Session, request_id: str) -> None:
    """One request."""
    session.run(client_calls.request(request_id), show_request)


@request.command("approve")
@click.argument("request_id")
@click.option("--amount", type=values.amount, help="Another amount than was asked for.")
@click.option("--refill", "refill_per_hour", type=values.amount, help="Another refill an hour.")
@click.option("--ends", "ends_at", type=values.instant, help="Another end, such as 7d.")
@click.option("--from", "take_from", type=values.account, help="Move credits from this account.")
@click.option("--note", help="A remark for who asked.")
@writes
def approve(
    session: Session,
    request_id: str,
    *,
    amount: str | None,
    refill_per_hour: str | None,
    ends_at: datetime | None,
    take_from: str | None,
    note: str | None,
    write: Write,
) -> None:
    """Approve a request, and do what it asks for."""
    call = client_calls.approve_request(
        request_id,
        amount=amount,
        refill_per_hour=refill_per_hour,
        ends_at=ends_at,
        take_from=take_from,
        note=note,
        **write,
    )
    session.run(call, show_request)


@request.command("decline")
@click.argument("request_id")
@click.option("--note", required=True, help="Why not.")
@writes
def decline(session: Session, request_id: str, *, note: str, write: Write) -> None:
    """Decline a request."""
    session.run(client_calls.decline_request(request_id, note, **write), show_request)


@request.command("cancel")
@click.argument("request_id")
@writes
def cancel(session: Session, request_id: str, *, write: Write) -> None:
    """Take back what you asked for."""
    session.run(client_calls.cancel_request(request_id, **write), show_request)


def show_request(answer: RequestAnswer) -> None:
    """One request."""
    output.print_facts(
        [
            ("request", answer.request_id),
            ("account", answer.account),
            ("asks for", f"{terms(answer, answer.asked)}"),
            ("reason", answer.reason),
            ("state", answer.state),
            ("asked by", answer.asked_by),
            ("asked at", output.instant(answer.asked_at)),
            ("open until", output.instant(answer.expires_at) if answer.state == "open" else None),
            ("approved", terms(answer, answer.approved) if answer.approved else None),
            ("taken from", answer.taken_from),
            ("decided by", answer.decided_by),
            ("note", answer.note),
            ("made", answer.result),
        ]
    )


def show_requests(page: RequestPage) -> None:
    """A page of requests."""
    output.print_table(
        ["request", "account", "asks for", "state", "reason", "asked"],
        [
            [
                row.request_id,
                row.account,
                terms(row, row.asked),
                row.state,
                row.reason,
                output.instant(row.asked_at),
            ]
            for row in page.requests
        ],
        empty="No requests.",
    )


def terms(answer: RequestAnswer, given: TermsAnswer) -> str:
    """What is asked for or approved, in one line."""
    until = f" until {output.instant(given.ends_at)}" if given.ends_at else ""
    some = count(given.amount, "credit")
    refill = f" and {given.refill_per_hour} an hour" if given.refill_per_hour else ""
    match answer.kind:
        case "credits":
            return f"{some}{until}"
        case "budget":
            return f"budget {answer.budget} of {some}{until}"
        case "quota":
            return f"{count_of(given.amount, answer.unit)} more on {answer.quota_id}{until}"
        case "rate_limit":
            return f"{some}{refill} more on the rate limit{until}"
