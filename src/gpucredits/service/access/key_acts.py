"""Making, listing and revoking keys, as administrative acts.

Owns: what is recorded of them. A new secret is shown once, by the call that made the key.
Must not: store a secret, in the clear or otherwise; a replay cannot show one again.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.core import ids
from gpucredits.service.access.permissions import Keyring, Principal, hash_of, made, new_secret
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access import keys
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.access.keys import KeyRow
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.wire.scalars import format_instant

__all__ = [
    "Expired",
    "KeyRow",
    "KeyUnknown",
    "MakerEnded",
    "Outlives",
    "create_key",
    "list_keys",
    "read_key",
    "revoke_key",
]


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made, with its secret; None when an earlier call has made the key."""

    row: KeyRow
    secret: str | None

    @property
    def is_replay(self) -> bool:
        """Whether an earlier call has made the key."""
        return self.secret is None


async def create_key(  # one argument for each fact about the key
    pool: Pool,
    act: Act,
    *,
    maker: Principal,
    role: str,
    scope: str,
    name: str,
    expires_at: int | None = None,
    node: str = "",
) -> NewKey:
    """Make a key that ends with its maker's key, or before if an end is given.

    Expired if the key would have ended by now, Outlives if it would end after its maker's, and
    MakerEnded if the maker's key has ended, whatever a server remembers of that key.
    """
    secret = new_secret(act.org_id)

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        last = await keys.end_of(db, org_id=maker.org_id, key_id=maker.key_id)
        if last is None:
            raise MakerEnded
        if expires_at is not None and expires_at > last:
            raise Outlives(last)
        end = last if expires_at is None else expires_at
        row = await keys.insert(
            db,
            org_id=act.org_id,
            secret_hash=hash_of(secret),
            name=name,
            role=role,
            scope=scope,
            expires_at=end,
            node=node,
            by_system=is_of_system(act.actor),
        )
        if end <= row.created_at:
            raise Expired
        key_id = ids.format_id(ids.KEY, row.org_id, row.key_id)
        note = act.note("key.create", key_id, new=made(row, hash_of(secret)))
        return msgspec.json.encode(row), note

    done = await perform(pool, act, work)
    row = msgspec.json.decode(done.answer, type=KeyRow)
    return NewKey(row, None if done.is_replay else secret)


def is_of_system(actor: str) -> bool:
    """Whether somebody who acts has a key for the whole system."""
    return actor.startswith(f"{ids.KEY}_0_")


async def revoke_key(
    pool: Pool, act: Act, keyring: Keyring, *, key_id: int, scope: str
) -> tuple[KeyRow, bool] | None:
    """End a key at once in this process, and within its memory's seconds in the others.

    Gives the key, and whether the answer is that of an earlier call.
    """
    evicted: list[bytes] = []

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        found = await keys.revoke(db, org_id=act.org_id, key_id=key_id, scope=scope)
        if found is None:
            raise KeyUnknown
        row, secret_hash = found
        evicted.append(secret_hash)
        note = act.note(
            "key.revoke",
            ids.format_id(ids.KEY, row.org_id, row.key_id),
            old={"role": row.role, "scope": row.scope, "name": row.name},
            new={"revoked_at": format_instant(row.revoked_at)},
        )
        return msgspec.json.encode(row), note

    try:
        done = await perform(pool, act, work)
    except KeyUnknown:
        return None
    for secret_hash in evicted:
        keyring.forget(secret_hash)
    return msgspec.json.decode(done.answer, type=KeyRow), done.is_replay


async def list_keys(pool: Pool, *, scope: str, after: tuple[int, int], limit: int) -> list[KeyRow]:
    """Keys whose scope lies within a scope, after (org, number)."""
    async with session(pool) as db:
        return await keys.page(db, scope=scope, after=after, limit=limit)


async def read_key(pool: Pool, *, org_id: int, key_id: int) -> KeyRow:
    """A key that there is, as it stands."""
    async with session(pool) as db:
        return await keys.read(db, org_id=org_id, key_id=key_id)


class KeyUnknown(Exception):  # noqa: N818  # it states what happened
    """There is no such key in the caller's scope."""


class MakerEnded(Exception):  # noqa: N818  # it states what happened
    """The key that would make another was revoked, or has expired."""


class Outlives(Exception):  # noqa: N818  # it states what happened
    """A key would end after the key that makes it, which ends at ``last``."""

    def __init__(self, last: int) -> None:
        super().__init__(last)
        self.last = last


class Expired(Exception):  # noqa: N818  # it states what happened
    """A key would have ended before it could be used."""
