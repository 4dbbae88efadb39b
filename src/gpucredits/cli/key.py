"""``gpucredits key``: API keys."""

from __future__ import annotations

from typing import Any

import click

from gpucredits.cli.connection import Session, connected, paged
from gpucredits.client import calls

ROLES = ("admin", "operator", "member", "agent", "read-only")


@click.group()
def key() -> None:
    """Make, list and revoke API keys."""


@key.command("create")
@click.option("--role", type=click.Choice(ROLES), required=True)
@click.option("--scope", metavar="ACCOUNT", help="Else the scope of the key that asks.")
@click.option("--name")
@connected
def create(session: Session, *, role: str, scope: str | None, name: str | None) -> None:
    """Make a key; its secret is shown this once."""
    answer = session.send(calls.create_key(role, scope=scope, name=name))
    facts = [
        ("key", answer.key_id),
        ("role", answer.role),
        ("scope", answer.scope or "system"),
        ("secret", answer.secret),
    ]
    session.show(answer, facts)


@key.command("list")
@paged
@connected
def list_(session: Session, *, page: dict[str, Any]) -> None:
    """List keys, without their secrets."""
    answer = session.send(calls.list_keys(**page))
    rows = [
        (
            each.key_id,
            each.role,
            each.scope or "system",
            each.name,
            each.created_at,
            each.revoked_at,
        )
        for each in answer.keys
    ]
    columns = ("key", "role", "scope", "name", "created", "revoked")
    session.show_list(answer, columns, rows, more=answer.next_cursor)


@key.command("revoke")
@click.argument("key_id")
@connected
def revoke(session: Session, *, key_id: str) -> None:
    """End a key at once."""
    answer = session.send(calls.revoke_key(key_id))
    session.show(answer, [("key", answer.key_id), ("revoked", answer.revoked_at)])
