"""Accounts: wallets at org, project or user scope, addressed by path.

Owns: what a path may look like, the balance of an account in its buckets, its floor.
Must not: move money.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

from gpucredits.core import bounds
from gpucredits.core.authority import Authority

SCOPES = ("org", "project", "user")
RESERVED_SEGMENTS = frozenset(
    {
        "balance",
        "usage",
        "limits",
        "rate-limit",
        "boosts",
        "budgets",
        "quotas",
        "tree",
        "suspend",
        "resume",
        "request-limit",
    }
)
_SEGMENT = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{bounds.PATH_SEGMENT_LENGTH_MAX - 1}}}", re.ASCII)


class Model(IntEnum):
    """Prepaid and postpaid differ only in the floor of the balance."""

    PREPAID = 0
    POSTPAID = 1


class Funding(IntEnum):
    """Whose credits an account may spend: its own only, or those that its parent may spend too."""

    OWN = 0
    SHARED = 1


class Status(IntEnum):
    """A suspended account admits nothing and drains what runs."""

    ACTIVE = 0
    SUSPENDED = 1


def check_path(path: str) -> str:
    """The path itself when it is well formed; ValueError says what is wrong."""
    segments = path.split("/")
    if len(segments) > len(SCOPES):
        raise ValueError("must have one to three segments: org, org/project or org/project/user")
    for segment in segments:
        if _SEGMENT.fullmatch(segment) is None:
            raise ValueError(
                f"must be made of segments of 1 to {bounds.PATH_SEGMENT_LENGTH_MAX} of a-z, 0-9, "
                "'.', '_' and '-' that start with a letter or digit, such as acme/vision/alice"
            )
        if segment in RESERVED_SEGMENTS:
            raise ValueError(f"must not use the reserved word {segment!r} as a segment")
    return path


def scope_of(path: str) -> str:
    """Org, project or user, by depth."""
    return SCOPES[path.count("/")]


def org_of(path: str) -> str:
    """The path of the org that a path lies in."""
    return path.partition("/")[0]


def lineage(path: str) -> list[str]:
    """The path and its ancestors, nearest first: user, project, org."""
    paths = [path]
    while "/" in path:
        path = path.rpartition("/")[0]
        paths.append(path)
    return paths


def parent_of(path: str) -> str:
    """The path of the account above, empty for an org."""
    return path.rpartition("/")[0]


def is_below(path: str, above: str) -> bool:
    """Whether a path is another or lies below it."""
    return path == above or path.startswith(f"{above}/")


@dataclass(slots=True)
class Account:
    """One wallet with its balance, the projection of its entries.

    ``remaining`` is what its active and held-over grants still hold; ``debt`` is what a postpaid
    account has used beyond its grants; ``overrun`` is what the house has covered and will collect
    from later credits, and ``overdraft_limit`` how much of that jobs may count on to end cleanly;
    ``promised`` is what its live leases were promised of it and have not used.
    ``funding`` says whose credits it may spend, ``allocated`` whether it was ever given credits of
    its own, and ``window_max_ms`` how long a window its leases may have at most, 0 for no bound.
    ``suspended_by`` is the scope of the key that suspended it, while ``status`` is suspended.
    A ``delinquent`` account is suspended until it pays. ``due_at`` is the earliest instant at which
    the clock alone may change the balance: a grant starts or ends, a budget issues its next
    allowance, or a lease may lapse.
    """

    account_id: int
    path: str
    model: Model = Model.PREPAID
    credit_limit: int = 0
    status: Status = Status.ACTIVE
    remaining: int = 0
    reserved: int = 0
    spent: int = 0
    debt: int = 0
    overrun: int = 0
    version: int = 0
    due_at: int = bounds.NEVER_US
    allocated: bool = False
    created_at: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
    delinquent: bool = False
    overdraft_limit: int = 0
    promised: int = 0
    funding: Funding = Funding.OWN
    window_max_ms: int = 0
    suspended_by: Authority = Authority.SYSTEM

    @property
    def available(self) -> int:
        """What could be held now, without the credit limit."""
        return self.remaining - self.reserved - self.debt

    @property
    def spendable(self) -> int:
        """What could be held now, down to the floor; negative where more than that is owed."""
        if self.model is Model.POSTPAID:
            return self.remaining - self.reserved - self.debt + self.credit_limit
        return self.remaining - self.reserved - self.debt

    @property
    def is_overdue(self) -> bool:
        """Whether it is paused for what it owes, and for nothing else."""
        return self.delinquent and self.status is Status.ACTIVE

    @property
    def floor(self) -> int:
        """The lowest value that anything may bring ``available`` to.

        A credit limit that was lowered below what is owed leaves ``available`` under its floor;
        then nothing brings it further down.
        """
        return -self.credit_limit if self.model is Model.POSTPAID else 0
