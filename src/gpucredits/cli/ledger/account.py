"""``gpucredits account``: open, list and look at wallets, suspend and resume them."""

from __future__ import annotations

import click
from rich.tree import Tree

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_ms
from gpucredits.wire.ledger.account import (
    AccountAnswer,
    AccountPage,
    FundingName,
    ModelName,
    StatusAnswer,
    StatusName,
    TreeAnswer,
    TreeNode,
)


@click.group(cls=Group)
def account() -> None:
    """Accounts of orgs, projects and users: acme/vision/alice."""


@account.command("create")
@click.argument("path", type=values.account)
@click.option("--model", type=click.Choice(["prepaid", "postpaid"]), help="Default: prepaid.")
@click.option(
    "--credit-limit", type=values.amount, help="How far below zero a postpaid account may go."
)
@click.option(
    "--funding",
    type=click.Choice(["own", "shared"]),
    help="Whose credits it may spend: its own, or its parent's too. Default: shared below an org.",
)
@click.option(
    "--label",
    "metadata",
    type=values.label,
    multiple=True,
    help="A label such as team=nlp. May be given many times.",
)
@writes
def create(
    session: Session,
    path: str,
    *,
    model: ModelName | None,
    credit_limit: str | None,
    funding: FundingName | None,
    metadata: tuple[tuple[str, str], ...],
    write: Write,
) -> None:
    """Open an account; its parent must exist."""
    if credit_limit not in (None, "0") and model != "postpaid":
        raise click.UsageError("A credit limit is for postpaid accounts: add --model postpaid.")
    call = client_calls.create_account(
        path,
        model=model,
        credit_limit=credit_limit,
        funding=funding,
        metadata=dict(metadata) or None,
        **write,
    )
    session.run(call, show_account)


@account.command("set")
@click.argument("path", type=values.account)
@click.option("--model", type=click.Choice(["prepaid", "postpaid"]))
@click.option(
    "--credit-limit", type=values.amount, help="How far below zero a postpaid account may go."
)
@click.option(
    "--overdraft-limit",
    type=values.amount,
    help="How much its jobs may overdraw in all; the house covers it.",
)
@click.option(
    "--funding",
    type=click.Choice(["own", "shared"]),
    help="Whose credits it may spend: its own, or its parent's too.",
)
@click.option(
    "--window-max",
    type=values.duration,
    help="How long leases of the account and below may last without a report; 0: no bound.",
)
@click.option(
    "--label",
    "metadata",
    type=values.label,
    multiple=True,
    help="A label such as team=nlp. May be given many times.",
)
@click.option("--unlabel", multiple=True, help="Remove the label of this name.")
@sets(
    {
        "credit-limit": "credit_limit",
        "overdraft-limit": "overdraft_limit",
        "window-max": "window_max_seconds",
        "labels": "metadata",
    }
)
def set_terms(  # noqa: PLR0913  # one argument for each option
    session: Session,
    path: str,
    *,
    model: ModelName | None,
    credit_limit: str | None,
    overdraft_limit: str | None,
    funding: FundingName | None,
    window_max: int | None,
    metadata: tuple[tuple[str, str], ...],
    unlabel: tuple[str, ...],
    write: Set,
) -> None:
    """Change what is given of an account's terms and labels; the rest stays as it is."""
    labels = {**dict(metadata), **dict.fromkeys(unlabel)}
    call = client_calls.update_account(
        path,
        model=model,
        credit_limit=credit_limit,
        overdraft_limit=overdraft_limit,
        window_max_seconds=values.whole_seconds(window_max, "--window-max"),
        funding=funding,
        metadata=labels or None,
        **write,
    )
    session.run(call, show_account)


@account.command("list")
@click.argument("under", type=values.account, required=False)
@click.option(
    "--model", type=click.Choice(["prepaid", "postpaid"]), help="Only accounts of this model."
)
@click.option(
    "--status", type=click.Choice(["active", "suspended"]), help="Only accounts in this status."
)
@pages
def list_accounts(
    session: Session,
    under: str | None,
    *,
    model: ModelName | None,
    status: StatusName | None,
    page: PageAt,
    follow: bool,
) -> None:
    """Accounts in order of path: all that you see, or UNDER and those below it."""
    call = client_calls.account_page(under=under, model=model, status=status, **page)
    session.run_pages(call, show_accounts, items="accounts", follow=follow)


@account.command("tree")
@click.argument("path", type=values.account)
@calls
def tree(session: Session, path: str) -> None:
    """An account and everything below it, with balances."""
    session.run(client_calls.tree(path), show_tree)


@account.command("show")
@click.argument("path", type=values.account)
@calls
def show(session: Session, path: str) -> None:
    """One account and its terms."""
    session.run(client_calls.account(path), show_account)


@account.command("suspend")
@click.argument("path", type=values.account)
@writes
def suspend(session: Session, path: str, *, write: Write) -> None:
    """Admit nothing more, and drain what runs."""
    session.run(client_calls.suspend(path, **write), show_account)


@account.command("resume")
@click.argument("path", type=values.account)
@writes
def resume(session: Session, path: str, *, write: Write) -> None:
    """Undo a suspension; an account with an unpaid statement stays paused until it is paid."""
    session.run(client_calls.resume(path, **write), show_status)


def show_account(answer: AccountAnswer) -> None:
    """One account."""
    output.print_facts(
        [
            ("account", answer.path),
            ("scope", answer.scope),
            ("status", answer.status),
            ("suspended by", suspended_by(answer)),
            ("model", answer.model),
            ("funding", answer.funding if answer.scope != "org" else ""),
            ("credit limit", answer.credit_limit if answer.model == "postpaid" else ""),
            ("overdue", "a statement: see gpucredits statement list" if answer.delinquent else ""),
            ("overdraft", answer.overdraft_limit if answer.overdraft_limit != "0" else ""),
            (
                "longest lease",
                format_ms(answer.window_max_seconds * 1_000) if answer.window_max_seconds else "",
            ),
            ("opened", output.instant(answer.created_at)),
            ("labels", output.labels(answer.metadata)),
        ]
    )


def suspended_by(answer: AccountAnswer) -> str:
    """Who may resume an account that is suspended."""
    scope = answer.suspended_by_scope
    return f"a key of {scope} scope" if scope else ""


def show_status(answer: StatusAnswer) -> None:
    """An account that was resumed, and what keeps it from admitting work all the same."""
    show_account(answer)
    if answer.note:
        click.echo(answer.note)


def show_accounts(page: AccountPage) -> None:
    """A page of accounts."""
    output.print_table(
        ["account", "scope", "status", "model", ">credit limit", "opened", "labels"],
        [
            [
                row.path,
                row.scope,
                row.status,
                row.model,
                row.credit_limit if row.model == "postpaid" else "",
                output.instant(row.created_at),
                output.labels(row.metadata),
            ]
            for row in page.accounts
        ],
        empty="No accounts.",
    )


def show_tree(answer: TreeAnswer) -> None:
    """A branch for each account; plain text is indented instead."""
    out, root = output.console(), answer.root
    if out.is_terminal:
        out.print(_branch(root, Tree(_line(root))))
    else:
        _print_indented(root, 0)


def _branch(node: TreeNode, tree: Tree) -> Tree:
    for child in node.children:
        _branch(child, tree.add(_line(child)))
    return tree


def _print_indented(node: TreeNode, depth: int) -> None:
    click.echo("  " * depth + _line(node))
    for child in node.children:
        _print_indented(child, depth + 1)


def _line(node: TreeNode) -> str:
    own = node.own
    text = f"{node.path}  available {own.available}, held {own.reserved}, spent {own.spent}"
    if node.children:
        whole = node.subtree
        text += (
            f"  (with all below: available {whole.available}, held {whole.reserved}, "
            f"spent {whole.spent})"
        )
    return f"{text}  suspended" if node.status == "suspended" else text
