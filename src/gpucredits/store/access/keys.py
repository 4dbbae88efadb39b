"""API keys at rest: only the hash of a secret, never the secret.

Owns: the rows of api_keys and system_keys. The number 0 is that of the system, which is no org.
Must not: decide who may do what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpucredits.core.bounds import NEVER_US
from gpucredits.core.request_limit import RequestLimit
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import next_number


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
    node: str = ""  # the only node that it may act for; empty for any
    by_system: bool = False  # made by staff of the system, not of its org


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key that was not revoked, with the request limits that were set for it and for its org.

    ``left_us`` is how long it may still be used; at 0 or below it has expired.
    """

    row: KeyRow
    own_limit: RequestLimit | None = None
    org_limit: RequestLimit | None = None
    left_us: int = NEVER_US


async def find_live(db: Connection, org_id: int, secret_hash: bytes) -> LiveKey | None:
    """The key of an org with this hash, unless it was revoked."""
    found = await db.fetchrow(
        "SELECT key.org_id, key.key_id, key.name, key.role, key.scope,"
        " key.created_at, key.expires_at, key.revoked_at, key.node, key.by_system,"
        " own.capacity, own.refill_per_hour,"
        " org.capacity, org.refill_per_hour, key.expires_at - ledger_now()"
        " FROM all_keys AS key"
        " LEFT JOIN request_limits AS own"
        " ON own.org_id = key.org_id AND own.holder = 1 AND own.number = key.key_id"
        " LEFT JOIN request_limits AS org"
        " ON org.org_id = key.org_id AND org.holder = 2 AND org.number = 0"
        " WHERE key.org_id = $1 AND key.hash = $2 AND key.revoked_at = 0",
        org_id,
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
        "SELECT hash, scope FROM all_keys WHERE org_id = $1 AND key_id = $2"
        " AND ($3 = '' OR scope = $3 OR starts_with(scope, $3 || '/'))",
        org_id,
        key_id,
        scope,
    )
    return None if found is None else (found["hash"], found["scope"])


async def read(db: Connection, *, org_id: int, key_id: int) -> KeyRow:
    """A key that there is; keys are never deleted."""
    row = await db.fetchrow(
        "SELECT org_id, key_id, name, role, scope, created_at, expires_at, revoked_at, node,"
        " by_system"
        " FROM all_keys WHERE org_id = $1 AND key_id = $2",
        org_id,
        key_id,
    )
    return KeyRow(**_required(row))


async def end_of(db: Connection, *, org_id: int, key_id: int) -> int | None:
    """When a key ends; None if it has ended or was revoked. Nobody revokes it meanwhile."""
    lives = "key_id = $1 AND revoked_at = 0 AND expires_at > ledger_now()"
    end: int | None
    if org_id:
        end = await db.fetchval(
            f"SELECT expires_at FROM api_keys WHERE org_id = $2 AND {lives} FOR SHARE",  # noqa: S608  # constant texts only
            key_id,
            org_id,
        )
    else:
        end = await db.fetchval(
            f"SELECT expires_at FROM system_keys WHERE {lives} FOR SHARE",  # noqa: S608  # constant texts only
            key_id,
        )
    return end


async def insert(  # noqa: PLR0913  # one argument for each fact about the key
    db: Connection,
    *,
    org_id: int,
    secret_hash: bytes,
    name: str,
    role: str,
    scope: str,
    expires_at: int = NEVER_US,
    node: str = "",
    by_system: bool = False,
) -> KeyRow:
    """Store a key, with the next number of its org."""
    if org_id:
        key_id = await next_number(db, org_id, "keys")
        await db.execute(
            "INSERT INTO api_keys (org_id, key_id, hash, name, role, scope, created_at,"
            " expires_at, node, by_system)"
            " VALUES ($1, $2, $3, $4, $5, $6, ledger_now(), $7, $8, $9)",
            org_id,
            key_id,
            secret_hash,
            name,
            role,
            scope,
            expires_at,
            node,
            by_system,
        )
    else:
        key_id = await db.fetchval(
            "INSERT INTO system_keys (hash, name, role, created_at, expires_at, node)"
            " VALUES ($1, $2, $3, ledger_now(), $4, $5) RETURNING key_id",
            secret_hash,
            name,
            role,
            expires_at,
            node,
        )
    return await read(db, org_id=org_id, key_id=key_id)


async def revoke(
    db: Connection, *, org_id: int, key_id: int, scope: str
) -> tuple[KeyRow, bytes] | None:
    """Revoke a key within a scope, once; the row and its hash, or None when there is no such key.

    Revoking again changes nothing and answers the same.
    """
    found = await find(db, org_id=org_id, key_id=key_id, scope=scope)
    if found is None:
        return None
    if org_id:
        await db.execute(
            "UPDATE api_keys SET revoked_at = ledger_now()"
            " WHERE org_id = $1 AND key_id = $2 AND revoked_at = 0",
            org_id,
            key_id,
        )
    else:
        await db.execute(
            "UPDATE system_keys SET revoked_at = ledger_now() WHERE key_id = $1 AND revoked_at = 0",
            key_id,
        )
    return await read(db, org_id=org_id, key_id=key_id), found[0]


async def page(db: Connection, *, scope: str, after: tuple[int, int], limit: int) -> list[KeyRow]:
    """Keys whose scope lies in a scope: the system's first, each org's in the order made."""
    rows = await db.fetch(
        "SELECT org_id, key_id, name, role, scope, created_at, expires_at, revoked_at, node,"
        " by_system"
        " FROM all_keys WHERE (org_id, key_id) > ($1, $2)"
        " AND ($3 = '' OR scope = $3 OR starts_with(scope, $3 || '/'))"
        " ORDER BY org_id, key_id LIMIT $4",
        *after,
        scope,
        limit,
    )
    return [KeyRow(**row) for row in rows]


async def is_used(db: Connection, secret_hash: bytes) -> bool:
    """Whether a secret is or was that of a key for the whole system."""
    found = await db.fetchval(
        "SELECT EXISTS (SELECT FROM system_keys WHERE hash = $1)", secret_hash
    )
    return bool(found)


async def has_system_admin(db: Connection) -> bool:
    """Whether anybody could let the others in."""
    found = await db.fetchval(
        "SELECT EXISTS (SELECT FROM system_keys WHERE role = 'admin'"
        " AND revoked_at = 0 AND expires_at > ledger_now())"
    )
    return bool(found)


def _required(row: Any) -> Any:
    if row is None:
        raise LookupError("the statement returned no row")
    return row
