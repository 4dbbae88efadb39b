"""A batch's own key: bound to the whole batch before any of its items is begun.

Owns: where it is bound. In every org that the batch names, so that it meets single requests there,
and in the caller's own (that of the system for who reaches every org), so that it meets the same
caller's batches in other orgs; never in anybody else's.
Must not: know the items; each has an answer of its own, under a key that no caller can name.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpucredits.service.write.errors import KeyReused
from gpucredits.store.access.batch_keys import bind
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.errors import driver_errors
from gpucredits.store.database.transaction import transaction


async def claim(pool: Pool, org_ids: Iterable[int], key: str, *, fingerprint: bytes) -> None:
    """Bind a key to what is asked; KeyReused, and nothing changed, when it is bound otherwise.

    It is durable once this returns, and binding it to the same again changes nothing.
    """
    with driver_errors():
        async with pool.acquire() as db, transaction(db):
            if not await bind(db, sorted(set(org_ids)), key, request_hash=fingerprint):
                raise KeyReused(key)


def item_key(key: str, fingerprint: bytes, position: int) -> str:
    """The key of one item of a batch. No caller's key has a space in it.

    It names the batch's content too: what an older batch left under the same key, once that is
    forgotten, never stands in the way of a new one.
    """
    return f"{key} {fingerprint.hex()[:16]} #{position}"
