"""Keys and the audit log on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from gpucredits.wire.documented import CREATED_AT, NEXT_CURSOR, NOTE, doc
from gpucredits.wire.scalars import AccountPath, Instant, InstantText, Name

SHOWN_ONCE = (
    "The secret was shown once, when this key was made. Revoke this key and make another if the "
    "secret was lost."
)
RoleName = Literal["admin", "operator", "member", "agent", "read-only"]


class KeyRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key with a role; without a scope it reaches the whole system."""

    role: Annotated[RoleName, doc("The role, which says what the key may do.")]
    scope: Annotated[
        AccountPath | None,
        doc("The account whose tree the key reaches; absent means the caller's scope."),
    ] = None
    name: Annotated[Name | None, doc("A name for people.")] = None
    expires_at: Annotated[Instant | None, doc("When the key expires; absent means never.")] = None
    node: Annotated[
        Name | None, doc("The only node that the key may act for; absent means any node.")
    ] = None


class KeyAnswer(Struct, kw_only=True):
    """A key, without its secret."""

    key_id: Annotated[str, doc("The id of the key.")]
    role: Annotated[RoleName, doc("The role, which says what the key may do.")]
    scope: Annotated[
        str, doc("The account whose tree the key reaches; empty means the whole system.")
    ]
    name: Annotated[str, doc("The name of the key.")]
    created_at: Annotated[InstantText, CREATED_AT]
    expires_at: Annotated[InstantText | None, doc("When the key expires; null if never.")]
    revoked_at: Annotated[InstantText | None, doc("When the key was revoked; null if it was not.")]
    node: Annotated[
        str | None, doc("The only node that the key may act for; null if it may for any.")
    ] = None


class NewKeyAnswer(KeyAnswer, kw_only=True):
    """A key and its secret. Only the call that made the key shows the secret.

    A replay of that call has a null ``secret``, and ``note`` says so.
    """

    secret: Annotated[str | None, doc("The key itself, shown only once; null in a replay.")]
    note: Annotated[str | None, NOTE] = None


class KeyPage(Struct, kw_only=True):
    """Keys in the order they were made."""

    keys: Annotated[list[KeyAnswer], doc("The keys of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class AuditAnswer(Struct, kw_only=True):
    """One administrative act."""

    audit_id: Annotated[int, doc("The number of the act, in the order of recording.")]
    at: Annotated[InstantText, doc("When the act was done.")]
    actor: Annotated[
        str, doc("Who acted: the id of a key, or system: and the name of a job of the server.")
    ]
    action: Annotated[str, doc("What was done, such as key.create.")]
    resource: Annotated[str, doc("The object of the act: the path of an account, or an id.")]
    old: Annotated[Any, doc("The changed values before the act.")]
    new: Annotated[Any, doc("The changed values after the act.")]
    request_id: Annotated[
        str, doc("The id of the HTTP request of the act; empty if there was none.")
    ]


class AuditPage(Struct, kw_only=True):
    """Acts, the latest first."""

    audit: Annotated[list[AuditAnswer], doc("The acts of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None
