"""API keys at rest: only the hash of a secret, never the secret.

Owns: the rows of api_keys.
Must not: decide who may do what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpucredits.store.connection import Connection


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key."""

    org_id: int
    key_id: int
    name: str
    role: str
    scope: str
    created_by: str
    created_at: int
    expires_at: int
    revoked_at: int


async def find_live(db: Connection, secret_hash: bytes) -> KeyRow | None:
    """The key with this hash, unless it was revoked or has expired."""
    row = await db.fetchrow(
        "SELECT org_id, key_id, name, role, scope, created_by, created_at, expires_at, revoked_at"
        " FROM api_keys"
        " WHERE hash = $1 AND revoked_at = 0 AND expires_at > ledger_now()",
        secret_hash,
    )
    return None if row is None else KeyRow(**row)


async def insert(
    db: Connection,
    *,
    org_id: int,
    secret_hash: bytes,
    name: str,
    role: str,
    scope: str,
    created_by: str,
) -> KeyRow:
    """Store a key."""
    row = await db.fetchrow(
        "INSERT INTO api_keys (org_id, hash, name, role, scope, created_by, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, ledger_now()) RETURNING org_id, key_id, name, role,"
        " scope, created_by, created_at, expires_at, revoked_at",
        org_id,
        secret_hash,
        name,
        role,
        scope,
        created_by,
    )
    return KeyRow(**_required(row))


async def revoke(
    db: Connection, *, org_id: int, key_id: int, scope: str
) -> tuple[KeyRow, bytes] | None:
    """Revoke a key within a scope, once; the row and its hash, or None when there is no such key.

    Revoking again changes nothing and answers the same.
    """
    row = await db.fetchrow(
        "UPDATE api_keys SET revoked_at = CASE revoked_at WHEN 0 THEN ledger_now()"
        " ELSE revoked_at END"
        " WHERE org_id = $1 AND key_id = $2"
        " AND ($3 = '' OR scope = $3 OR starts_with(scope, $3 || '/'))"
        " RETURNING org_id, key_id, name, role, scope, created_by, created_at, expires_at,"
        " revoked_at, hash",
        org_id,
        key_id,
        scope,
    )
    if row is None:
        return None
    fields: dict[str, Any] = dict(row)
    secret_hash = fields.pop("hash")
    return KeyRow(**fields), bytes(secret_hash)


async def page(db: Connection, *, scope: str, after: int, limit: int) -> list[KeyRow]:
    """Keys whose scope lies in a scope, in the order they were made."""
    rows = await db.fetch(
        "SELECT org_id, key_id, name, role, scope, created_by, created_at, expires_at, revoked_at"
        " FROM api_keys WHERE key_id > $1"
        " AND ($2 = '' OR scope = $2 OR starts_with(scope, $2 || '/'))"
        " ORDER BY key_id LIMIT $3",
        after,
        scope,
        limit,
    )
    return [KeyRow(**row) for row in rows]


async def is_used(db: Connection, secret_hash: bytes) -> bool:
    """Whether a secret is or was a key's."""
    found = await db.fetchval("SELECT EXISTS (SELECT FROM api_keys WHERE hash = $1)", secret_hash)
    return bool(found)


async def has_system_admin(db: Connection) -> bool:
    """Whether anybody could let the others in."""
    found = await db.fetchval(
        "SELECT EXISTS (SELECT FROM api_keys WHERE scope = '' AND role = 'admin'"
        " AND revoked_at = 0 AND expires_at > ledger_now())"
    )
    return bool(found)


def _required(row: Any) -> Any:
    if row is None:
        raise LookupError("the statement returned no row")
    return row
