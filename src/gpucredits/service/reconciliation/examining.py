"""Reading leases with their measured use, and comparing them one by one.

Owns: the reads of a comparison.
Must not: post anything, or decide what becomes of a lease (passes.py does).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpucredits.core.reconciliation.comparison import (
    Comparison,
    NodeUse,
    ReconcilePolicy,
    compare,
    counted,
    governing,
    paths_above,
)
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.reconciliation import comparisons, measured_use
from gpucredits.store.reconciliation.comparisons import POLICIES, DueLease


@dataclass(frozen=True, slots=True)
class Examined:
    """One lease beside its measured use."""

    due: DueLease
    lease: Reservation
    nodes: tuple[NodeUse, ...]
    policy: ReconcilePolicy
    found: Comparison
    is_attested: bool

    @property
    def events(self) -> int:
        """The number of events that the lease's nodes reported."""
        return sum(each.events for each in self.nodes)


async def examine(pool: Pool, claimed: Sequence[DueLease]) -> list[Examined]:
    """Read leases with their measured use; live leases are left until they have ended."""
    async with session(pool) as db:
        numbers = [(due.org_id, due.reservation_id) for due in claimed]
        leases = await measured_use.read_leases(db, numbers)
        there = [(due, leases[due[:2]]) for due in claimed if due[:2] in leases]
        policies = await policies_by_org(db, there)
        ended = [each for each in there if each[1].state is not ReservationState.ACTIVE]
        uses = await measured_use.read_measured(db, [(due.org_id, each) for due, each in ended])
        await comparisons.postpone(
            db,
            [
                (due, governing(lease.account, policies[due.org_id]).quiet_ms)
                for due, lease in there
                if lease.state is ReservationState.ACTIVE
            ],
        )
    found: list[Examined] = []
    for (due, lease), told in zip(ended, uses, strict=True):
        nodes, is_attested = counted(told)
        compared = compare(lease, [span for node in nodes for span in node.spans])
        policy = governing(lease.account, policies[due.org_id])
        found.append(Examined(due, lease, nodes, policy, compared, is_attested))
    return found


async def policies_by_org(
    db: Connection, leases: Sequence[tuple[DueLease, Reservation]]
) -> dict[int, dict[str, ReconcilePolicy]]:
    """The policies of the leases' accounts and of all accounts above them, by org."""
    paths: dict[int, set[str]] = {}
    for due, lease in leases:
        paths.setdefault(due.org_id, set()).update(paths_above(lease.account))
    return {org_id: await POLICIES.at(db, org_id, sorted(named)) for org_id, named in paths.items()}
