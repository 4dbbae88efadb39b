"""Who calls, and who may do what: API keys, roles, scopes, and the one table that joins them.

Owns: the permissions, which role has which, and which of them reach only from the system scope;
what a secret looks like, and the short memory of keys that were just checked.
A key sees its own scope and everything below it; all else does not exist for it. A secret has 256
random bits, so one round of SHA-256 is all its hash needs.
Must not: know HTTP, or keep or log a secret.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpucredits.core import ids
from gpucredits.core.account import is_below, org_of
from gpucredits.core.authority import Authority, authority_of
from gpucredits.core.bounds import SECOND_US
from gpucredits.core.request_limit import BucketDraw, Defaults, asks_of
from gpucredits.store.access import keys
from gpucredits.store.access.keys import KeyRow, LiveKey
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session
from gpucredits.wire.scalars import format_end

PREFIX: Final = "gck_"
MEMORY_S: Final = 5.0
MEMORY_KEYS_MAX: Final = 10_000
# A secret names its org, so that it is looked for among that org's keys; the system's name none.
TOKEN = re.compile(r"gck_(?:([1-9a-z][0-9a-z]{0,11})_)?[A-Za-z0-9_-]{43}", re.ASCII)


class Role(StrEnum):
    """What a key is for."""

    ADMIN = "admin"
    OPERATOR = "operator"
    MEMBER = "member"
    AGENT = "agent"
    READ_ONLY = "read-only"


class Permission(StrEnum):
    """One thing that a key may or may not do."""

    READ = "read"
    READ_LEASES = "read_leases"
    READ_QUEUED = "read_queued"
    READ_PRICES = "read_prices"
    READ_CLOCK = "read_clock"
    READ_SELF = "read_self"
    READ_AUDIT = "read_audit"
    READ_POOLS = "read_pools"
    READ_SNAPSHOT = "read_snapshot"
    SET_POOL = "set_pool"
    KEEP_RUNNING = "keep_running"
    CREATE_ACCOUNT = "create_account"
    CREATE_ORG = "create_org"
    SUSPEND = "suspend"
    SET_TERMS = "set_terms"
    SET_POLICY = "set_policy"
    SET_PRICE = "set_price"
    ISSUE = "issue"
    RECORD_TOPUP = "record_topup"
    DECIDE_TOPUP = "decide_topup"
    TRANSFER = "transfer"
    RESERVE = "reserve"
    BEAT = "beat"
    CLOSE_LEASE = "close_lease"
    ASK = "ask"
    DECIDE_REQUEST = "decide_request"
    CORRECT = "correct"
    MANAGE_KEYS = "manage_keys"
    MOVE_CLOCK = "move_clock"
    REPAIR_CLOCK = "repair_clock"
    RUN_MAINTENANCE = "run_maintenance"
    READ_METRICS = "read_metrics"
    LIMIT_REQUESTS = "limit_requests"
    SIGN_TOKENS = "sign_tokens"
    READ_EVENTS = "read_events"
    KEEP_EVENTS = "keep_events"
    READ_DEAD_LETTERS = "read_dead_letters"
    DECIDE_DEAD_LETTER = "decide_dead_letter"


_EVERYBODY = frozenset(Role)
_READERS = frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER, Role.READ_ONLY})
_RUNNERS = frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER, Role.AGENT})
_STAFF = frozenset({Role.ADMIN, Role.OPERATOR})
_ADMINS = frozenset({Role.ADMIN})

ALLOWED: dict[Permission, frozenset[Role]] = {
    Permission.READ: _READERS,
    Permission.READ_LEASES: _EVERYBODY,
    Permission.READ_QUEUED: _READERS,
    Permission.READ_PRICES: _EVERYBODY,
    Permission.READ_CLOCK: _EVERYBODY,
    Permission.READ_SELF: _EVERYBODY,
    Permission.READ_AUDIT: _STAFF,
    Permission.READ_POOLS: _READERS,
    Permission.READ_SNAPSHOT: _STAFF,
    Permission.SET_POOL: _STAFF,
    Permission.KEEP_RUNNING: _STAFF,
    Permission.CREATE_ACCOUNT: _STAFF,
    Permission.CREATE_ORG: _STAFF,
    Permission.SUSPEND: _STAFF,
    Permission.SET_TERMS: _STAFF,
    Permission.SET_POLICY: _STAFF,
    Permission.SET_PRICE: _STAFF,
    Permission.ISSUE: _STAFF,
    Permission.RECORD_TOPUP: _STAFF,
    Permission.DECIDE_TOPUP: _STAFF,
    Permission.TRANSFER: _STAFF,
    Permission.RESERVE: _RUNNERS - {Role.AGENT},
    Permission.BEAT: _RUNNERS,
    Permission.CLOSE_LEASE: _RUNNERS,
    Permission.ASK: _RUNNERS - {Role.AGENT},
    Permission.DECIDE_REQUEST: _STAFF,
    Permission.CORRECT: _STAFF,
    Permission.MANAGE_KEYS: _ADMINS,
    Permission.MOVE_CLOCK: _ADMINS,
    Permission.REPAIR_CLOCK: _STAFF,
    Permission.RUN_MAINTENANCE: _STAFF,
    Permission.READ_METRICS: _READERS - {Role.MEMBER},
    Permission.LIMIT_REQUESTS: _STAFF,
    Permission.SIGN_TOKENS: _ADMINS,
    Permission.READ_EVENTS: _READERS - {Role.MEMBER},
    Permission.KEEP_EVENTS: _STAFF,
    Permission.READ_DEAD_LETTERS: _STAFF,
    Permission.DECIDE_DEAD_LETTER: _STAFF,
}
# These make credits, change what a credit buys or what others get, or bound a tenant: its own staff
# must not.
SYSTEM_ONLY = frozenset(
    {
        Permission.READ_SNAPSHOT,
        Permission.SET_POOL,
        Permission.KEEP_RUNNING,
        Permission.CREATE_ORG,
        Permission.SET_TERMS,
        Permission.SET_PRICE,
        Permission.ISSUE,
        Permission.DECIDE_TOPUP,
        Permission.CORRECT,
        Permission.MOVE_CLOCK,
        Permission.REPAIR_CLOCK,
        Permission.RUN_MAINTENANCE,
        Permission.READ_METRICS,
        Permission.LIMIT_REQUESTS,
        Permission.SIGN_TOKENS,
        Permission.READ_DEAD_LETTERS,
        Permission.DECIDE_DEAD_LETTER,
    }
)
# All that is left of a role on a node: for a key that is bound to one, and for every key that comes
# over the certificate of one. Each of these reaches leases of that node only.
ON_A_NODE = frozenset(
    {
        Permission.READ_LEASES,
        Permission.READ_QUEUED,
        Permission.READ_PRICES,
        Permission.READ_CLOCK,
        Permission.READ_SELF,
        Permission.RESERVE,
        Permission.BEAT,
        Permission.CLOSE_LEASE,
    }
)
BINDABLE = frozenset({Role.MEMBER, Role.AGENT})  # roles whose keys may be bound to a node


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is asking: a key with its role and scope; an empty scope is the whole system.

    ``node`` is the only node that it may act for, by its key or its certificate; empty for any.
    ``by_system`` says that staff of the system made the key, ``is_certified`` that the certificate
    of its node came with the request.
    """

    key_id: int
    org_id: int
    role: Role
    scope: str = ""
    name: str = ""
    node: str = ""
    by_system: bool = False
    is_certified: bool = False
    asks: tuple[BucketDraw, ...] = ()  # the buckets that each of its requests draws from

    @property
    def actor(self) -> str:
        """Who acts, as it is written down: the id of the key."""
        return ids.format_id(ids.KEY, self.org_id, self.key_id)

    @property
    def reach(self) -> str:
        """Where it may act, in words."""
        where = self.scope or "the whole system"
        return f"{where} on node {self.node}" if self.node else where

    @property
    def authority(self) -> Authority:
        """The scope at which the bounds that it sets are set."""
        return authority_of(self.scope)

    @property
    def is_system(self) -> bool:
        """Whether it reaches every org."""
        return not self.scope

    @property
    def is_whole_org(self) -> bool:
        """Whether it reaches everything in its org."""
        return "/" not in self.scope

    @property
    def project(self) -> str:
        """The path that pools show it rows of: its org or project; its project for a user's key."""
        return "/".join(self.scope.split("/")[:2])

    @property
    def org(self) -> str:
        """The path of its org, empty for the system."""
        return org_of(self.scope)

    def own(self, idempotency_key: str) -> str:
        """An idempotency key as the ledger keeps it: in the namespace of this key's scope.

        Keys of one scope share a namespace; no other scope can use, read or block its names. A
        path has no colon, and no key that the server makes for itself has one before its space.
        """
        return f"{self.scope}:{idempotency_key}"


def may(principal: Principal, permission: Permission) -> bool:
    """Whether its role and the width of its scope allow it, whatever the account."""
    if permission in SYSTEM_ONLY and not principal.is_system:
        return False
    if principal.node and permission not in ON_A_NODE:
        return False
    return principal.role in ALLOWED[permission]


def attests(principal: Principal) -> bool:
    """Whether what it measures is the word of a node, which may move money.

    The system vouches for a node: by the node's certificate, or by the key that its staff made for
    nodes. Staff of a tenant make keys for nodes too, but these carry only the tenant's word.
    """
    is_for_nodes = bool(principal.node) or principal.role is Role.AGENT
    return principal.is_certified or (principal.by_system and is_for_nodes)


def sees(principal: Principal, path: str) -> bool:
    """Whether an account exists as far as this key is concerned."""
    return not principal.scope or is_below(path, principal.scope)


def sees_org(principal: Principal, org_id: int) -> bool:
    """Whether an org exists as far as this key is concerned."""
    return principal.is_system or principal.org_id == org_id


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
        match = TOKEN.fullmatch(token)
        if match is None:
            return NoKey.UNKNOWN
        secret_hash = hash_of(token)
        remembered = self._memory.get(secret_hash)
        if remembered is not None and remembered[0] > time.monotonic():
            return remembered[1]
        async with session(self._pool) as db:
            live = await keys.find_live(db, int(match[1] or "0", 36), secret_hash)
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


def new_secret(org_id: int = 0) -> str:
    """A secret that nobody can guess, of an org's key or of one for the whole system."""
    named = f"{ids.base36(org_id)}_" if org_id else ""
    return f"{PREFIX}{named}{secrets.token_urlsafe(32)}"


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
        node=row.node,
        by_system=row.by_system,
        asks=asks_of(
            key=(row.org_id, row.key_id),
            org=org_of(row.scope),
            own=live.own_limit,
            of_org=live.org_limit,
            defaults=defaults,
        ),
    )


def made(row: KeyRow, secret_hash: bytes) -> dict[str, str | None]:
    """What the audit log says of a new key: all that its power comes from."""
    return {
        "role": row.role,
        "scope": row.scope,
        "name": row.name,
        "expires_at": format_end(row.expires_at),
        "fingerprint": fingerprint_of(secret_hash),
        **({"node": row.node} if row.node else {}),
    }
