"""What a repair of an org's clock found, changed and could not mend, as plain data.

Owns: these rows.
Must not: decide (rules/clock_repairs does).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


@dataclass(slots=True)
class Traces:
    """What a clock that stood ahead left behind beside the rows of the book.

    ``expired`` is what expired of each grant and was not restored. ``rolled`` has allowances of
    which a part has rolled over, and ``reversed`` grants of payments that were taken back.
    """

    expired: dict[int, int] = field(default_factory=dict)
    rolled: set[int] = field(default_factory=set)
    reversed: set[int] = field(default_factory=set)


class Mend(StrEnum):
    """What a repair does to a grant."""

    RESTORED = "restored"  # it had ended early: what expired of it is back
    WITHDRAWN = "withdrawn"  # it had started early: it waits for its start again
    RESTAMPED = "restamped"  # it was made while the clock was ahead: it was made now


class MendedLease(NamedTuple):
    """A live lease with the two stamps that the repair moved, as they were and as they are."""

    reservation_id: int
    account: str
    admitted_before: int
    admitted_at: int
    expires_before: int
    expires_at: int


class MendedGrant(NamedTuple):
    """A grant, and how many credits the repair moved into or out of it."""

    grant_id: int
    account: str
    mend: Mend
    amount: int


class Left(StrEnum):
    """What a repair cannot mend."""

    LEASE_LAPSED = "lease_lapsed"
    LEASE_OVERCHARGED = "lease_overcharged"
    GRANT_STARTED = "grant_started"
    GRANT_REVERSED = "grant_reversed"
    ALLOWANCE_ROLLED_OVER = "allowance_rolled_over"
    STATEMENT_CLOSED = "statement_closed"
    PRICE_LATER = "price_later"
    BOOST_LATER = "boost_later"


class LeftAsItIs(NamedTuple):
    """Something that a repair cannot mend; ``number`` is of the row, ``amount`` in its unit."""

    kind: Left
    number: int
    account: str
    amount: int = 0


@dataclass(slots=True)
class ClockRepair:
    """An org's clock brought back from ``clock`` to ``now``, and what went with it.

    ``windows`` and ``rate_limits`` are the numbers of limits whose stamps lay ahead.
    """

    org: str
    clock: int
    now: int
    leases: list[MendedLease] = field(default_factory=list)
    grants: list[MendedGrant] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    rate_limits: list[int] = field(default_factory=list)
    left: list[LeftAsItIs] = field(default_factory=list)
