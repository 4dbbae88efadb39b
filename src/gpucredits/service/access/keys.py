"""API keys: making, checking and revoking them.

Owns: what a secret looks like, the short memory of keys that were just checked, and the first
admin key. A secret has 256 random bits, so one round of SHA-256 is all its hash needs.
Must not: keep or log a secret.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from enum import StrEnum
from pathlib import Path
from typing import Final

from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.core.bounds import SECOND_US
from gpucredits.core.request_limit import Defaults, asks_of
from gpucredits.service.access.permissions import Principal, Role
from gpucredits.store.access import acts, audit, keys
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.access.keys import KeyRow, LiveKey
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.embedded import private
from gpucredits.wire.scalars import format_end

PREFIX: Final = "gck_"
MEMORY_S: Final = 5.0
MEMORY_KEYS_MAX: Final = 10_000
_TOKEN = re.compile(r"gck_[A-Za-z0-9_-]{43}", re.ASCII)


class NoKey(StrEnum):
    """Why a secret lets nobody in."""

    UNKNOWN = "unauthenticated"
    EXPIRED = "key_expired"


class Keyring:
    """Who a secret belongs to, remembered for a few seconds."""

    def __init__(self, pool: Pool, *, defaults: Defaults = Defaults()) -> None:  # noqa: B008  # it never changes
        self._pool = pool
        self.defaults = defaults
        self._memory: dict[bytes, tuple[float, Principal | NoKey]] = {}

    async def authenticate(self, token: str) -> Principal | NoKey:
        """The key's owner, or why the secret is not a live key's."""
        if _TOKEN.fullmatch(token) is None:
            return NoKey.UNKNOWN
        secret_hash = hash_of(token)
        remembered = self._memory.get(secret_hash)
        if remembered is not None and remembered[0] > time.monotonic():
            return remembered[1]
        async with session(self._pool) as db:
            live = await keys.find_live(db, secret_hash)
        owner: Principal | NoKey = NoKey.UNKNOWN
        lasts_s = MEMORY_S
        if live is not None and live.left_us <= 0:
            owner = NoKey.EXPIRED
        elif live is not None:
            owner = principal_of(live, self.defaults)
            lasts_s = min(MEMORY_S, live.left_us / SECOND_US)
        if len(self._memory) >= MEMORY_KEYS_MAX:
            self._memory.clear()
        self._memory[secret_hash] = (time.monotonic() + lasts_s, owner)
        return owner

    def forget(self, secret_hash: bytes) -> None:
        """Look the key up anew the next time it is used."""
        self._memory.pop(secret_hash, None)

    def forget_all(self) -> None:
        """Look every key up anew."""
        self._memory.clear()


def new_secret() -> str:
    """A secret that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(token.encode()).digest()


def fingerprint_of(secret_hash: bytes) -> str:
    """What the audit log says of a key's hash: whose hash was replaced is another key."""
    return hashlib.sha256(secret_hash).hexdigest()


def principal_of(live: LiveKey, defaults: Defaults) -> Principal:
    """Who a stored key is, and which buckets its requests draw from."""
    row = live.row
    return Principal(
        key_id=row.key_id,
        org_id=row.org_id,
        role=Role(row.role),
        scope=row.scope,
        name=row.name,
        asks=asks_of(
            key=(row.org_id, row.key_id),
            org=org_of(row.scope),
            own=live.own_limit,
            of_org=live.org_limit,
            defaults=defaults,
        ),
    )


async def ensure_admin_key(pool: Pool, path: Path) -> bool:
    """Let the first administrator in: write a key to ``path`` unless the database has one.

    The file comes first: killed in between, the next start finds the file and enters its key. A
    key that was revoked never comes back: the file gets a new one.
    """
    async with session(pool) as db, db.transaction():
        await acts.lock_orgs(db, [0])
        if await keys.has_system_admin(db):
            return False
        token = read_token(path)
        if token is None or await keys.is_used(db, hash_of(token)):
            token = write_token(path, new_secret())
        await enter_admin_key(db, token, name="first admin")
        return True


async def add_admin_key(pool: Pool, path: Path) -> None:
    """Let an operator in whose keys are lost: enter one more admin key, and write it to ``path``.

    For whoever holds the database's files, and so could change every row anyway.
    """
    async with session(pool) as db, db.transaction():
        await acts.lock_orgs(db, [0])
        token = write_token(path, new_secret())
        await enter_admin_key(db, token, name="admin after a restore")


async def enter_admin_key(db: Connection, token: str, *, name: str) -> None:
    """Enter the key of a system admin, with its line in the audit log."""
    row = await keys.insert(
        db, org_id=0, secret_hash=hash_of(token), name=name, role=Role.ADMIN, scope=""
    )
    key_id = ids.format_id(ids.KEY, row.org_id, row.key_id)
    note = AuditNote(SYSTEM, "key.create", key_id, "", new=made(row, hash_of(token)))
    await audit.insert(db, 0, [note])


def made(row: KeyRow, secret_hash: bytes) -> dict[str, str | None]:
    """What the audit log says of a new key: all that its power comes from."""
    return {
        "role": row.role,
        "scope": row.scope,
        "name": row.name,
        "expires_at": format_end(row.expires_at),
        "fingerprint": fingerprint_of(secret_hash),
    }


def read_token(path: Path) -> str | None:
    """The key in a file, if it is one; NotOursError if others could have written or read it."""
    private.check_secret(path)
    try:
        token = private.read_file(path).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return token if _TOKEN.fullmatch(token) else None


def write_token(path: Path, token: str) -> str:
    """Write a key for its owner's eyes only, whole or not at all."""
    private.make_directory(path.parent)
    private.write_file(path, f"{token}\n".encode("ascii"))
    return token
