"""Grants: lots of credits with a window, a priority and a source.

Owns: the one total order in which grants are consumed.
Must not: decide when anything is consumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

from gpucredits.core import bounds


class Source(IntEnum):
    """Where the credits came from; promo is consumed before paid at equal expiry."""

    PROMO = 0
    ALLOWANCE = 1
    TRANSFER = 2
    TOPUP = 3


DEBT = 0  # in the place of a grant's id: a postpaid account used more than its grants hold
OVERRUN = -1  # in the place of a grant's id: the house covered it, to be collected later


class GrantState(IntEnum):
    """A held-over grant has ended; what is left of it is kept for claims of live leases."""

    HELD_OVER = 0
    ACTIVE = 1
    PENDING = 2
    ENDED = 3


HELD_OVER_LAST = len(GrantState)  # nobody but the leases with a claim takes from such a grant


@dataclass(slots=True)
class Grant:
    """A lot: ``amount`` at issue, ``remaining`` of it now, valid on [starts_at, expires_at).

    ``claims`` is how much live leases may still claim of it after its end, in all.
    """

    grant_id: int
    account_id: int
    amount: int
    remaining: int
    starts_at: int
    expires_at: int = bounds.NEVER_US
    priority: int = bounds.PRIORITY_DEFAULT
    source: Source = Source.ALLOWANCE
    state: GrantState = GrantState.ACTIVE
    origin_id: int = 0
    created_at: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
    budget_id: int = 0
    claims: int = 0


def seen_at(grant: Grant, now: int) -> Grant:
    """The grant as it stands at ``now``: one that is used up ends on time with nothing written."""
    if grant.remaining or grant.expires_at > now:
        return grant
    return replace(grant, state=GrantState.ENDED)


def usable_since(grant: Grant) -> int:
    """When a grant's credits could first pay: its start, or its making if that was later."""
    return max(grant.starts_at, grant.created_at)


def consumption_order(grant: Grant) -> tuple[int, int, int, int, int, int]:
    """The total order: active, pending and then held over; within each the order of ``rank``."""
    return (
        HELD_OVER_LAST if grant.state is GrantState.HELD_OVER else grant.state,
        grant.priority,
        grant.expires_at,
        grant.source,
        grant.starts_at,
        grant.grant_id,
    )


def rank(grant: Grant) -> tuple[int, int, int, int, int]:
    """Priority, soonest expiry, promo before paid, start, id."""
    return (
        grant.priority,
        grant.expires_at,
        grant.source,
        grant.starts_at,
        grant.grant_id,
    )
