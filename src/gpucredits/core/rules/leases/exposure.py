"""Exposure: the most that jobs can still use and be charged for if no server answers.

Owns: the exposure of one lease as plain arithmetic. The store sums it up with the same formulas.
Must not: touch rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpucredits.core.money import cost
from gpucredits.core.reservation import Outage, Reservation, lives_until


class Exposure(NamedTuple):
    """What the leases of one payer could still use if no server answered from now on.

    ``held`` covers everything that a node which obeys its leases can use within its credits;
    ``escrow`` is the part of ``held`` that lies beyond the windows that run. ``promised`` is what
    may be overdrawn. ``grace`` is what jobs that lived on through an outage may report beyond
    that, as far as the payer can fund it.
    """

    held: int = 0
    escrow: int = 0
    promised: int = 0
    grace: int = 0

    @property
    def total(self) -> int:
        """The number that is never exceeded."""
        return self.held + self.promised + self.grace


def exposure_of(lease: Reservation, outages: Sequence[Outage]) -> Exposure:
    """The exposure of a live lease, before its payer's credits bound the grace.

    The grace of an outage counts before it is written down in the lease.
    """
    rate = lease.rate
    window_end = cost(rate, lease.used_ms + lease.window_ms)
    end = lives_until(lease, outages)
    grace = 0
    if end > lease.trusted_until:
        most = cost(rate, (end - lease.admitted_at) // 1_000)
        grace = max(most - lease.settled - lease.ahead, 0)
    return Exposure(
        lease.held,
        max(lease.settled + lease.held - window_end, 0),
        lease.promised,
        grace,
    )


def sum_of(spendable: int, leases: list[Exposure]) -> Exposure:
    """The exposure of one payer: its credits bound the grace of all its leases.

    Credits that are held count too: a lease that lapses gives its hold back, others may spend it,
    and what the lapsed lease reports late is charged all the same.
    """
    held = sum(each.held for each in leases)
    grace = min(sum(each.grace for each in leases), max(spendable + held, 0))
    escrow = sum(each.escrow for each in leases)
    return Exposure(held, escrow, sum(each.promised for each in leases), grace)
