"""Calls about API keys and the audit log."""

from __future__ import annotations

from collections.abc import Mapping

from gpucredits.client.call import Call, When, body_of, item_path, read, write
from gpucredits.wire.access import (
    AuditPage,
    KeyAnswer,
    KeyPage,
    KeyRequest,
    NewKeyAnswer,
    RoleName,
)


def create_key(
    role: RoleName,
    *,
    scope: str | None = None,
    name: str | None = None,
    expires_at: When | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[NewKeyAnswer]:
    """Make an API key; the answer is the only place that shows its secret."""
    body = body_of(KeyRequest, role=role, scope=scope, name=name, expires_at=expires_at)
    return write("/v1/keys", NewKeyAnswer, body=body, key=key, dry_run=dry_run)


def revoke_key(key_id: str, *, key: str | None = None, dry_run: bool = False) -> Call[KeyAnswer]:
    """Make an API key useless, for good."""
    return write(item_path("keys", key_id, ":revoke"), KeyAnswer, key=key, dry_run=dry_run)


def whoami() -> Call[KeyAnswer]:
    """The API key that asks: its name, role and scope."""
    return read("/v1/keys/self", KeyAnswer)


def key_page(*, cursor: str | None = None, limit: int | None = None) -> Call[KeyPage]:
    """A page of API keys, without their secrets."""
    return read("/v1/keys", KeyPage, cursor=cursor, limit=limit)


def audit_page(  # noqa: PLR0913  # one argument for each filter
    *,
    account: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    resource: str | None = None,
    metadata: Mapping[str, str] | None = None,
    since: When | None = None,
    until: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[AuditPage]:
    """A page of administrative acts, the latest first."""
    return read(
        "/v1/audit",
        AuditPage,
        account=account,
        actor=actor,
        action=action,
        resource=resource,
        metadata=metadata,
        since=since,
        until=until,
        cursor=cursor,
        limit=limit,
    )
