"""``gpucredits grant``, ``topup`` and ``transfer``."""

from __future__ import annotations

from typing import Any

import click

from gpucredits.cli.connection import Session, connected, labels_option, paged
from gpucredits.client import calls
from gpucredits.wire.credit import GrantAnswer, TopUpAnswer


@click.group()
def grant() -> None:
    """Issue credits and list grants."""


@grant.command("issue")
@click.argument("account")
@click.argument("amount")
@click.option("--starts-at", metavar="INSTANT")
@click.option("--expires-at", metavar="INSTANT")
@click.option("--priority", type=int, help="Lower is used first.")
@click.option("--source", type=click.Choice(["allowance", "promo"]))
@click.option("--dry-run", is_flag=True)
@click.option("--idempotency-key")
@labels_option
@connected
def issue(
    session: Session,
    *,
    account: str,
    amount: str,
    dry_run: bool,
    idempotency_key: str | None,
    **fields: Any,
) -> None:
    """Grant credits to an account."""
    answer = session.send(
        calls.issue(account, amount, key=idempotency_key, dry_run=dry_run, **fields)
    )
    session.show(answer, grant_facts(answer))


@grant.command("list")
@click.argument("account")
@click.option("--tree", is_flag=True, help="Of the whole subtree.")
@click.option("--open", "is_open", is_flag=True, help="Only those with something left.")
@paged
@connected
def list_(
    session: Session, *, account: str, tree: bool, is_open: bool, page: dict[str, Any]
) -> None:
    """List the grants of an account, the oldest first."""
    answer = session.send(calls.list_grants(account=account, tree=tree, open=is_open, **page))
    columns = ("grant", "account", "amount", "remaining", "state", "source", "starts", "expires")
    rows = [
        (
            each.grant_id,
            each.account,
            each.amount,
            each.remaining,
            each.state,
            each.source,
            each.starts_at,
            each.expires_at or "never",
        )
        for each in answer.grants
    ]
    session.show_list(answer, columns, rows, more=answer.next_cursor)


@click.group()
def topup() -> None:
    """Record payments and what becomes of them."""


@topup.command("create")
@click.argument("account")
@click.argument("amount")
@click.option("--payment-reference", required=True)
@click.option("--confirmed", is_flag=True, help="The payment has arrived already.")
@click.option("--expires-at", metavar="INSTANT")
@click.option("--idempotency-key")
@connected
def create(  # one argument for each option
    session: Session,
    *,
    account: str,
    amount: str,
    payment_reference: str,
    confirmed: bool,
    idempotency_key: str | None,
    expires_at: str | None,
) -> None:
    """Record a payment; only a confirmed one makes a grant."""
    status = "confirmed" if confirmed else "pending"
    operation = calls.top_up(
        account,
        amount,
        payment_reference,
        key=idempotency_key,
        status=status,
        expires_at=expires_at,
    )
    show_topup(session, session.send(operation))


@topup.command("confirm")
@click.argument("topup_id")
@connected
def confirm(session: Session, *, topup_id: str) -> None:
    """The payment arrived: grant the credits."""
    show_topup(session, session.send(calls.decide_topup(topup_id, "confirm")))


@topup.command("fail")
@click.argument("topup_id")
@connected
def fail(session: Session, *, topup_id: str) -> None:
    """The payment will not arrive."""
    show_topup(session, session.send(calls.decide_topup(topup_id, "fail")))


@topup.command("reverse")
@click.argument("topup_id")
@connected
def reverse(session: Session, *, topup_id: str) -> None:
    """The payment was taken back."""
    show_topup(session, session.send(calls.decide_topup(topup_id, "reverse")))


@topup.command("list")
@click.argument("account")
@paged
@connected
def list_topups(session: Session, *, account: str, page: dict[str, Any]) -> None:
    """List the top-ups of an account, the latest first."""
    answer = session.send(calls.list_topups(account=account, **page))
    columns = ("top-up", "account", "amount", "status", "reference", "created")
    rows = [
        (
            each.topup_id,
            each.account,
            each.amount,
            each.status,
            each.payment_reference,
            each.created_at,
        )
        for each in answer.topups
    ]
    session.show_list(answer, columns, rows, more=answer.next_cursor)


@click.command()
@click.argument("source")
@click.argument("target")
@click.argument("amount")
@click.option("--dry-run", is_flag=True)
@click.option("--idempotency-key")
@connected
def transfer(
    session: Session,
    *,
    source: str,
    target: str,
    amount: str,
    dry_run: bool,
    idempotency_key: str | None,
) -> None:
    """Move credits between two accounts of one org; their windows stay."""
    answer = session.send(
        calls.transfer(source, target, amount, key=idempotency_key, dry_run=dry_run)
    )
    facts: list[tuple[str, object]] = [
        ("transfer", answer.transfer_id),
        ("from", answer.source),
        ("to", answer.target),
        ("amount", answer.amount),
    ]
    facts.extend(
        ("lot", f"{lot.amount} {lot.from_grant_id} -> {lot.to_grant_id}") for lot in answer.lots
    )
    session.show(answer, facts)


def grant_facts(answer: GrantAnswer) -> list[tuple[str, object]]:
    """What people want to see of a grant."""
    return [
        ("grant", answer.grant_id),
        ("account", answer.account),
        ("amount", answer.amount),
        ("state", answer.state),
        ("starts", answer.starts_at),
        ("expires", answer.expires_at or "never"),
    ]


def show_topup(session: Session, answer: TopUpAnswer) -> None:
    """A top-up as people want to see it."""
    facts: list[tuple[str, object]] = [
        ("top-up", answer.topup_id),
        ("account", answer.account),
        ("amount", answer.amount),
        ("status", answer.status),
        ("grant", answer.grant_id),
    ]
    session.show(answer, facts)
