"""Signing keys at rest: the public half, and the private half sealed with the servers' secret.

Owns: the rows of signing_keys. A row never changes, but for its revocation.
Must not: open a private half; the database never sees one.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.store.database.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeyRow:
    """A stored signing key; ``signs_from`` is when it takes over from the one before it."""

    key_id: str
    public_key: bytes
    sealed: bytes
    created_at: int
    signs_from: int
    revoked_at: int = 0


async def list_all(db: Connection) -> list[SigningKeyRow]:
    """Every key in the order in which they sign."""
    rows = await db.fetch(
        "SELECT key_id, public_key, sealed, created_at, signs_from, revoked_at FROM signing_keys"
        " ORDER BY signs_from, created_at, key_id"
    )
    return [SigningKeyRow(**row) for row in rows]


async def insert(db: Connection, row: SigningKeyRow) -> None:
    """Store a key."""
    await db.execute(
        "INSERT INTO signing_keys (key_id, public_key, sealed, created_at, signs_from)"
        " VALUES ($1, $2, $3, $4, $5)",
        row.key_id,
        row.public_key,
        row.sealed,
        row.created_at,
        row.signs_from,
    )


async def revoke(db: Connection, key_id: str, *, at: int) -> bool:
    """Revoke a key, once; whether there was one to revoke."""
    status = await db.execute(
        "UPDATE signing_keys SET revoked_at = $2 WHERE key_id = $1 AND revoked_at = 0", key_id, at
    )
    return bool(status == "UPDATE 1")


async def ledger_now(db: Connection) -> int:
    """The database's time, which decides."""
    now: int = await db.fetchval("SELECT ledger_now()")
    return now
