"""Who may do what: roles, scopes, and the one table that joins them.

Owns: the permissions, which role has which, and which of them reach only from the system scope.
A key sees its own scope and everything below it; all else does not exist for it.
Must not: know HTTP, or how keys are stored (store.keys does).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpucredits.core import ids
from gpucredits.core.account import is_below, org_of
from gpucredits.core.authority import Authority, authority_of
from gpucredits.core.request_limit import Ask


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
    READ_METRICS = "read_metrics"
    LIMIT_REQUESTS = "limit_requests"


_EVERYBODY = frozenset(Role)
_READERS = frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER, Role.READ_ONLY})
_RUNNERS = frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER, Role.AGENT})
_STAFF = frozenset({Role.ADMIN, Role.OPERATOR})
_ADMINS = frozenset({Role.ADMIN})

ALLOWED: dict[Permission, frozenset[Role]] = {
    Permission.READ: _READERS,
    Permission.READ_LEASES: _EVERYBODY,
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
    Permission.READ_METRICS: _READERS - {Role.MEMBER},
    Permission.LIMIT_REQUESTS: _STAFF,
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
        Permission.READ_METRICS,
        Permission.LIMIT_REQUESTS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is asking: a key with its role and scope; an empty scope is the whole system."""

    key_id: int
    org_id: int
    role: Role
    scope: str = ""
    name: str = ""
    asks: tuple[Ask, ...] = ()  # the buckets that each of its requests draws from

    @property
    def actor(self) -> str:
        """Who acts, as it is written down: the id of the key."""
        return ids.format_id(ids.KEY, self.org_id, self.key_id)

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
    return principal.role in ALLOWED[permission]


def sees(principal: Principal, path: str) -> bool:
    """Whether an account exists as far as this key is concerned."""
    return not principal.scope or is_below(path, principal.scope)


def sees_org(principal: Principal, org_id: int) -> bool:
    """Whether an org exists as far as this key is concerned."""
    return principal.is_system or principal.org_id == org_id
