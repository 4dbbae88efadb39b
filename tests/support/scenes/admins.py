"""A system administrator of a ledger that has no server."""

from __future__ import annotations

from gpucredits.service.access.admin_keys import enter_admin_key
from gpucredits.service.access.permissions import Keyring, Principal, new_secret
from gpucredits.store.database.connection import Pool


async def first_admin(pool: Pool) -> Principal:
    """Somebody with a new key for the whole system that has no end."""
    secret = new_secret()
    async with pool.acquire() as db, db.transaction():
        await enter_admin_key(db, secret, name="first admin")
    found = await Keyring(pool).authenticate(secret)
    assert isinstance(found, Principal)
    return found
