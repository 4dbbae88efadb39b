"""``gpucredits key``: API keys with a role and a scope."""

from __future__ import annotations

from datetime import datetime
from typing import Final, get_args

import click

from gpucredits.cli.limits.request_limit import limit
from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.access.keys import KeyAnswer, KeyPage, NewKeyAnswer, RoleName

SHOWN_ONCE: Final = "Store the secret now: it is not shown again. Commands read GPUCREDITS_API_KEY."


@click.group(cls=Group)
def key() -> None:
    """API keys: who may do what, and where."""


@key.command("create")
@click.argument("role", type=click.Choice(get_args(RoleName)))
@click.option("--scope", type=values.account, help="Reach this account and all below it only.")
@click.option("--name", help="What it is for.")
@click.option("--expires", "expires_at", type=values.instant, help="Such as 30d. Default: never.")
@click.option("--node", help="Act for leases of this node only; for the roles member and agent.")
@writes
def create(  # one argument for each option
    session: Session,
    role: RoleName,
    *,
    scope: str | None,
    name: str | None,
    expires_at: datetime | None,
    node: str | None,
    write: Write,
) -> None:
    """Make a key; its secret is shown this once."""
    call = client_calls.create_key(
        role, scope=scope, name=name, expires_at=expires_at, node=node, **write
    )
    session.run(call, show_new_key)


@key.command("list")
@pages
def list_keys(session: Session, *, page: PageAt, follow: bool) -> None:
    """Keys in the order they were made, without their secrets."""
    session.run_pages(client_calls.key_page(**page), show_keys, items="keys", follow=follow)


@key.command("whoami")
@calls
def whoami(session: Session) -> None:
    """The key that this command uses: who it is, what it is for and until when."""
    session.run(client_calls.whoami(), show_own_key)


@key.command("revoke")
@click.argument("key_id")
@writes
def revoke(session: Session, key_id: str, *, write: Write) -> None:
    """Make a key useless, for good."""
    session.run(client_calls.revoke_key(key_id, **write), show_key)


key.add_command(limit)


def show_new_key(answer: NewKeyAnswer) -> None:
    """A key with its secret; a replay says that the secret was shown before."""
    output.print_facts([*_facts(answer), ("secret", answer.secret), ("note", answer.note)])
    if answer.secret:
        output.say(SHOWN_ONCE, err=True)


def show_key(answer: KeyAnswer) -> None:
    """One key."""
    output.print_facts(_facts(answer))


def show_own_key(answer: KeyAnswer) -> None:
    """One key, with its end even if it never expires."""
    output.print_facts(_facts(answer, endless="never"))


def show_keys(page: KeyPage) -> None:
    """A page of keys."""
    output.print_table(
        ["key", "role", "scope", "node", "name", "made", "expires", "revoked"],
        [
            [
                row.key_id,
                row.role,
                row.scope or "the whole system",
                row.node or "",
                row.name,
                output.instant(row.created_at),
                output.instant(row.expires_at) or "never",
                output.instant(row.revoked_at),
            ]
            for row in page.keys
        ],
        empty="No keys.",
    )


def _facts(answer: KeyAnswer, *, endless: str = "") -> list[tuple[str, str | None]]:
    return [
        ("key", answer.key_id),
        ("role", answer.role),
        ("scope", answer.scope or "the whole system"),
        ("node", answer.node),
        ("name", answer.name),
        ("made", output.instant(answer.created_at)),
        ("expires", output.instant(answer.expires_at) or endless),
        ("revoked", output.instant(answer.revoked_at)),
    ]
