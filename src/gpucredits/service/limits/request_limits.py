"""Setting and ending limits on requests, as administrative acts, and how they stand.

Owns: what is recorded of them, and which limit is in force for a key or an org. Other servers
follow within the seconds for which they remember keys.
Must not: count requests; limiters do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.core.change import Named
from gpucredits.core.request_limit import (
    BucketDraw,
    BucketName,
    Holder,
    RequestLimit,
    RequestStanding,
    changed_limit,
    standing_of,
)
from gpucredits.service.access.key_acts import KeyUnknown
from gpucredits.service.access.permissions import Keyring, Principal
from gpucredits.service.limits.limiter import Limiter
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access import keys
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.limits import request_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTarget:
    """Whose limit: a key's, or an org's, whose number is 0; ``scope`` is how far the caller sees.

    ``resource`` is what the audit log calls it.
    """

    org_id: int
    holder: Holder
    number: int
    resource: str
    scope: str


@dataclass(frozen=True, slots=True)
class InForce:
    """The limit that holds, None for none, and whether it was set for this key or org."""

    limit: RequestLimit | None
    is_own: bool
    is_replay: bool = False


async def read_limit(pool: Pool, keyring: Keyring, target: LimitTarget) -> InForce:
    """The limit in force; ``KeyUnknown`` when the caller sees no such key."""
    async with session(pool) as db:
        await _key(db, target)
        own = await _own(db, target)
    return _in_force(keyring, target, own)


async def org_standing(
    pool: Pool, keyring: Keyring, limiter: Limiter, org_id: int, org: str
) -> RequestStanding | None:
    """How the limit on all keys of an org stands; None where there is none."""
    target = LimitTarget(org_id=org_id, holder=Holder.ORG, number=0, resource=org, scope=org)
    limit = (await read_limit(pool, keyring, target)).limit
    if limit is None:
        return None
    ask = BucketDraw(BucketName(org_id, Holder.ORG, 0, org), limit)
    return standing_of(ask, await limiter.look(ask))


async def key_standing(limiter: Limiter, principal: Principal) -> RequestStanding | None:
    """How the limit of the caller's own key stands; None where there is none."""
    for ask in principal.asks:
        if ask.name.holder is Holder.KEY:
            return standing_of(ask, await limiter.look(ask))
    return None


async def change_limit(
    pool: Pool,
    keyring: Keyring,
    act: Act,
    target: LimitTarget,
    *,
    wanted: RequestLimit | None,
    named: Named = None,
) -> InForce:
    """Set a limit or its named terms; None ends it, and the server's default holds again.

    Other terms stay as the limit in force has them, which may be the server's default; ValueError
    if there is none. Tokens that are there stay, as far as they fit: no change hands out a fresh
    bucket.
    """
    evicted: list[bytes] = []

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        secret_hash, scope = await _key(db, target)
        evicted.append(secret_hash)
        before = await _own(db, target)
        in_force = _in_force(keyring, target, before).limit
        limit = None if wanted is None else changed_limit(wanted, in_force, named)
        where = {"org_id": target.org_id, "number": target.number}
        if limit is None:
            await request_limits.end_limit(db, holder=target.holder, **where)
        else:
            await request_limits.set_limit(db, limit, holder=target.holder, **where)
        note = act.note(
            "request_limit.end" if limit is None else "request_limit.set",
            target.resource,
            old=_state(before, scope),
            new=_state(limit, scope),
        )
        return msgspec.json.encode(limit), note

    done = await perform(pool, act, work)
    if evicted and target.holder is Holder.KEY:
        keyring.forget(evicted[0])
    elif evicted:
        keyring.forget_all()
    own = msgspec.json.decode(done.answer, type=RequestLimit | None)
    in_force = _in_force(keyring, target, own)
    return InForce(in_force.limit, in_force.is_own, done.is_replay)


async def _key(db: Connection, target: LimitTarget) -> tuple[bytes, str]:
    """The hash of the key's secret, by which it is remembered, and its scope; none for an org."""
    if target.holder is Holder.ORG:
        return b"", ""
    found = await keys.find(db, org_id=target.org_id, key_id=target.number, scope=target.scope)
    if found is None:
        raise KeyUnknown
    return found


async def _own(db: Connection, target: LimitTarget) -> RequestLimit | None:
    return await request_limits.find_limit(
        db, org_id=target.org_id, holder=target.holder, number=target.number
    )


def _in_force(keyring: Keyring, target: LimitTarget, own: RequestLimit | None) -> InForce:
    defaults = keyring.defaults
    fallback = defaults.key if target.holder is Holder.KEY else defaults.org
    return InForce(own or fallback, is_own=own is not None)


def _state(limit: RequestLimit | None, scope: str) -> dict[str, Any] | None:
    if limit is None:
        return None
    state = {"capacity": limit.capacity, "refill_per_hour": limit.refill_per_hour}
    return state | {"scope": scope} if scope else state
