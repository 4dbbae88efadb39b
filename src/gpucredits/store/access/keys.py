"""API keys at rest: only the hash of a secret, never the secret.

Owns: the rows of api_keys.
Must not: decide who may do what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpucredits.core.bounds import NEVER_US
from gpucredits.core.request_limit import RequestLimit
from gpucredits.store.database.connection import Connection


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key."""

    org_id: int
    key_id: int
    name: str
    role: str
    scope: str
    created_at: int
    expires_at: int
    revoked_at: int


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key that was not revoked, with the request limits that were set for it and for its org.

    ``left_us`` is for how long it may still be used: it has expired when that is not above 0.
    """

    row: KeyRow
    own_limit: RequestLimit | None = None
    org_limit: RequestLimit | None = None
    left_us: int = NEVER_US


async def find_live(db: Connection, secret_hash: bytes) -> LiveKey | None:
    """The key with this hash, unless it was revoked."""
    found = await db.fetchrow(
        "SELECT key.org_id, key.key_id, key.name, key.role, key.scope,"
        " key.created_at, key.expires_at, key.revoked_at, own.capacity, own.refill_per_hour,"
        " org.capacity, org.refill_per_hour, key.expires_at - ledger_now()"
        " FROM api_keys AS key"
        " LEFT JOIN request_limits AS own"
        " ON own.org_id = key.org_id AND own.holder = 1 AND own.number = key.key_id"
        " LEFT JOIN request_limits AS org"
        " ON org.org_id = key.org_id AND org.holder = 2 AND org.number = 0"
        " WHERE key.hash = $1 AND key.revoked_at = 0",
        secret_hash,
    )
    if found is None:
        return None
    *columns, own_capacity, own_refill, org_capacity, org_refill, left_us = found
    return LiveKey(
        KeyRow(*columns),
        None if own_capacity is None else RequestLimit(own_capacity, own_refill),
        None if org_capacity is None else RequestLimit(org_capacity, org_refill),
        left_us,
    )


async def find(db: Connection, *, org_id: int, key_id: int, scope: str) -> tuple[bytes, str] | None:
    """(hash, own scope) of a key within a scope, live or not; None when there is no such key."""
    found = await db.fetchrow(
        "SELECT hash, scope FROM api_keys WHERE org_id = $1 AND key_id = $2"
        " AND ($3 = '' OR scope = $3 OR starts_with(scope, $3 || '/'))",
        org_id,
        key_id,
        scope,
    )
    return None if found is None else (found["hash"], found["scope"])


async def read(db: Connection, *, org_id: int, key_id: int) -> KeyRow:
    """A key that there is; keys are never deleted."""
    row = await db.fetchrow(
        "SELECT org_id, key_id, name, role, scope, created_at, expires_at, revoked_at"
        " FROM api_keys WHERE org_id = $1 AND key_id = $2",
        org_id,
        key_id,
    )
    return KeyRow(**_required(row))


async def insert(
    db: Connection,
    *,
    org_id: int,
    secret_hash: bytes,
    name: str,
    role: str,
    scope: str,
    expires_at: int = NEVER_US,
) -> KeyRow:
    """Store a key."""
    row = await db.fetchrow(
        "INSERT INTO api_keys (org_id, hash, name, role, scope, created_at, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, ledger_now(), $6) RETURNING org_id, key_id, name, role,"
        " scope, created_at, expires_at, revoked_at",
        org_id,
        secret_hash,
        name,
        role,
        scope,
        expires_at,
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
        " RETURNING org_id, key_id, name, role, scope, created_at, expires_at,"
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
        "SELECT org_id, key_id, name, role, scope, created_at, expires_at, revoked_at"
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
