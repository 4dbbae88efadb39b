"""The first admin key, and one for an operator whose keys are lost: files for their owner's eyes.

Owns: the order of file and row, so that a kill in between leaves one of them to go on from.
Must not: keep or log a secret elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from gpucredits.core import ids
from gpucredits.service.access.permissions import TOKEN, Role, hash_of, made, new_secret
from gpucredits.store.access import acts, audit, keys
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.embedded import private


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
    """Let in an operator whose keys are lost: enter one more admin key, and write it to ``path``.

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


def read_token(path: Path) -> str | None:
    """The key in a file, if it is one; NotOursError if others could have written or read it."""
    private.check_secret(path)
    try:
        token = private.read_file(path).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return token if TOKEN.fullmatch(token) else None


def write_token(path: Path, token: str) -> str:
    """Write a key for its owner's eyes only, whole or not at all."""
    private.make_directory(path.parent)
    private.write_file(path, f"{token}\n".encode("ascii"))
    return token
