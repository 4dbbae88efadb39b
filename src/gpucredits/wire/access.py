"""Keys and the audit log on the wire."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from gpucredits.wire.scalars import AccountPath, Instant, InstantText, Name

SHOWN_ONCE = (
    "The secret was shown once, when this key was made. Revoke this key and make another if the "
    "secret was lost."
)
RoleName = Literal["admin", "operator", "member", "agent", "read-only"]


class KeyRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key with a role; without a scope it reaches the whole system."""

    role: RoleName
    scope: AccountPath | None = None
    name: Name | None = None
    expires_at: Instant | None = None


class KeyAnswer(Struct, kw_only=True):
    """A key, without its secret."""

    key_id: str
    role: RoleName
    scope: str
    name: str
    created_at: InstantText
    expires_at: InstantText | None
    revoked_at: InstantText | None


class NewKeyAnswer(KeyAnswer, kw_only=True):
    """A key and its secret. Only the call that made the key shows the secret.

    A replay of that call has a null ``secret``, and ``note`` says so.
    """

    secret: str | None
    note: str | None = None


class KeyPage(Struct, kw_only=True):
    """Keys in the order they were made."""

    keys: list[KeyAnswer]
    next_cursor: str | None = None


class AuditAnswer(Struct, kw_only=True):
    """One administrative act."""

    audit_id: int
    at: InstantText
    actor: str
    action: str
    resource: str
    old: Any
    new: Any
    request_id: str


class AuditPage(Struct, kw_only=True):
    """Acts, the latest first."""

    audit: list[AuditAnswer]
    next_cursor: str | None = None
