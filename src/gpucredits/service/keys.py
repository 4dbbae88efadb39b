"""API keys: making, checking and revoking them.

Owns: what a secret looks like, the short memory of keys that were just checked, and the first
admin key. A secret has 256 random bits, so one round of SHA-256 is all its hash needs.
Must not: keep or log a secret.
"""

from __future__ import annotations

import hashlib
import os
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
from gpucredits.service.access import Principal, Role
from gpucredits.store import acts, audit, keys
from gpucredits.store.audit import SYSTEM, AuditNote
from gpucredits.store.connection import Pool
from gpucredits.store.errors import driver_errors
from gpucredits.store.keys import LiveKey

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
        with driver_errors():
            async with self._pool.acquire() as db:
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


def seal(secret: str, *, token: str, key: str) -> bytes:
    """Hide a new secret so that only who asked for it, with the same key, can see it again.

    Its record answers a repeated request with the same secret, and is of no use to whoever reads
    the database: the pad comes from the caller's own secret. Sealing twice opens.
    """
    return _pad(secret.encode(), token, key)


def unseal(sealed: bytes, *, token: str, key: str) -> str | None:
    """The secret, or None when somebody else is asking."""
    text = _pad(sealed, token, key).decode("ascii", errors="replace")
    return text if _TOKEN.fullmatch(text) else None


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
    with driver_errors():
        async with pool.acquire() as db, db.transaction():
            await acts.lock_orgs(db, [0])
            if await keys.has_system_admin(db):
                return False
            token = read_token(path)
            if token is None or await keys.is_used(db, hash_of(token)):
                token = write_token(path, new_secret())
            row = await keys.insert(
                db,
                org_id=0,
                secret_hash=hash_of(token),
                name="first admin",
                role=Role.ADMIN,
                scope="",
            )
            note = AuditNote(
                SYSTEM,
                "key.create",
                ids.format_id(ids.KEY, row.org_id, row.key_id),
                "",
                new={"role": "admin"},
            )
            await audit.insert(db, 0, [note])
            return True


def read_token(path: Path) -> str | None:
    """The key in a file, if it is one."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return token if _TOKEN.fullmatch(token) else None


def write_token(path: Path, token: str) -> str:
    """Write a key for its owner's eyes only, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return token


def _pad(data: bytes, token: str, key: str) -> bytes:
    stream = hashlib.shake_256(b"\0".join([b"gck seal", token.encode(), key.encode()]))
    return bytes(one ^ other for one, other in zip(data, stream.digest(len(data)), strict=True))
