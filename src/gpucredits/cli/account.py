"""``gpucredits account`` and ``gpucredits balance``."""

from __future__ import annotations

from typing import Any

import click

from gpucredits.cli.connection import Session, connected, labels_option, paged
from gpucredits.client import calls
from gpucredits.wire.account import AccountAnswer, TreeNode

COLUMNS = ("path", "scope", "model", "credit limit", "status", "created")


@click.group()
def account() -> None:
    """Open, list and change accounts."""


@account.command("create")
@click.argument("path")
@click.option("--model", type=click.Choice(["prepaid", "postpaid"]))
@click.option("--credit-limit", metavar="CREDITS")
@click.option("--idempotency-key")
@labels_option
@connected
def create(session: Session, *, path: str, idempotency_key: str | None, **fields: Any) -> None:
    """Open an account such as acme, acme/vision or acme/vision/alice."""
    answer = session.send(calls.create_account(path, key=idempotency_key, **fields))
    session.show(answer, facts_of(answer))


@account.command("list")
@click.option("--under", help="Only this account and those below it.")
@click.option("--status", type=click.Choice(["active", "suspended"]))
@paged
@connected
def list_(session: Session, *, under: str | None, status: str | None, page: dict[str, Any]) -> None:
    """List accounts in order of path."""
    answer = session.send(calls.list_accounts(under=under, status=status, **page))
    rows = [
        (each.path, each.scope, each.model, each.credit_limit, each.status, each.created_at)
        for each in answer.accounts
    ]
    session.show_list(answer, COLUMNS, rows, more=answer.next_cursor)


@account.command("show")
@click.argument("path")
@connected
def show(session: Session, *, path: str) -> None:
    """Show an account and its terms."""
    answer = session.send(calls.get_account(path))
    session.show(answer, facts_of(answer))


@account.command("tree")
@click.argument("path")
@connected
def tree(session: Session, *, path: str) -> None:
    """Show an account and everything below it, with balances."""
    answer = session.send(calls.tree(path))
    rows: list[tuple[object, ...]] = []

    def walk(node: TreeNode, depth: int) -> None:
        sums = node.subtree
        name = "  " * depth + node.path.rpartition("/")[2]
        rows.append((name, sums.available, sums.reserved, sums.spent, node.model, node.status))
        for child in node.children:
            walk(child, depth + 1)

    walk(answer.root, 0)
    session.show_list(
        answer, ("account", "available", "reserved", "spent", "model", "status"), rows
    )


@account.command("suspend")
@click.argument("path")
@connected
def suspend(session: Session, *, path: str) -> None:
    """Admit nothing more below an account, and drain what runs."""
    answer = session.send(calls.suspend(path))
    session.show(answer, facts_of(answer))


@account.command("resume")
@click.argument("path")
@connected
def resume(session: Session, *, path: str) -> None:
    """Admit again."""
    answer = session.send(calls.resume(path))
    session.show(answer, facts_of(answer))


@account.command("set")
@click.argument("path")
@click.option("--model", type=click.Choice(["prepaid", "postpaid"]))
@click.option("--credit-limit", metavar="CREDITS")
@labels_option
@connected
def set_(session: Session, *, path: str, **fields: Any) -> None:
    """Change an account's terms or labels."""
    answer = session.send(calls.change_account(path, **fields))
    session.show(answer, facts_of(answer))


@click.command()
@click.argument("path")
@click.option("--tree", is_flag=True, help="The sum of the whole subtree.")
@click.option("--at", metavar="INSTANT", help="As it was then, as is known now.")
@click.option("--known-at", metavar="INSTANT", help="As it was known then.")
@connected
def balance(
    session: Session, *, path: str, tree: bool, at: str | None, known_at: str | None
) -> None:
    """Show what an account holds, now or in the past."""
    answer = session.send(calls.balance(path, tree=tree or None, at=at, known_at=known_at))
    facts = [
        ("account", answer.account),
        ("available", answer.available),
        ("reserved", answer.reserved),
        ("spent", answer.spent),
        ("pending", answer.pending),
        ("as of", answer.as_of),
    ]
    session.show(answer, facts)


def facts_of(answer: AccountAnswer) -> list[tuple[str, object]]:
    """What people want to see of an account."""
    labels = ", ".join(f"{name}={value}" for name, value in sorted(answer.metadata.items()))
    return [
        ("path", answer.path),
        ("scope", answer.scope),
        ("model", answer.model),
        ("credit limit", answer.credit_limit),
        ("status", answer.status),
        ("created", answer.created_at),
        ("labels", labels),
    ]
